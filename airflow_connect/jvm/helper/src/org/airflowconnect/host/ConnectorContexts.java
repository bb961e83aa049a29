package org.airflowconnect.host;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.sink.SinkConnectorContext;
import org.apache.kafka.connect.source.SourceConnectorContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/** The context of a connector of either kind; it remembers what threads of the connector report. */
final class ConnectorContexts implements SourceConnectorContext, SinkConnectorContext {
    private final OffsetStore offsets;
    private final PluginMetrics metrics = new NoMetrics();
    private final AtomicReference<Exception> raised = new AtomicReference<>();
    private final AtomicBoolean reconfigure = new AtomicBoolean();

    ConnectorContexts(OffsetStore offsets) {
        this.offsets = offsets;
    }

    @Override
    public void requestTaskReconfiguration() {
        reconfigure.set(true);
    }

    @Override
    public void raiseError(Exception error) {
        raised.compareAndSet(null, error);
    }

    @Override
    public PluginMetrics pluginMetrics() {
        return metrics;
    }

    @Override
    public OffsetStorageReader offsetStorageReader() {
        return offsets;
    }

    /** The first error that was reported, or null. */
    Exception raised() {
        return raised.get();
    }

    /** Whether other tasks were requested since the last call. */
    boolean isReconfigurationRequested() {
        return reconfigure.getAndSet(false);
    }

    /** What has been reported; a request for other tasks is reported once. */
    ObjectNode report() {
        Exception error = raised.get();
        return Json.object()
                .put("raised", error == null ? null : Failures.text(error))
                .put("reconfigure", reconfigure.getAndSet(false));
    }
}
