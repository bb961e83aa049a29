package org.airflowconnect.host;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import org.apache.kafka.connect.sink.ErrantRecordReporter;
import org.apache.kafka.connect.sink.SinkRecord;

/**
 * Records that a sink task could not write. Reports may come from any thread of the plugin and long after put(), so
 * they are handed over with whatever answer is next. Python's error policy judges them.
 */
final class ErrantRecords implements ErrantRecordReporter {
    private ArrayNode reported = Json.array();
    private Traces traces = new Traces();

    @Override
    public synchronized Future<Void> report(SinkRecord record, Throwable error) {
        ObjectNode described = Json.object();
        traces.describe(described, error);
        reported.add(Json.array()
                .add(record.originalTopic())
                .add(record.originalKafkaPartition())
                .add(record.originalKafkaOffset())
                .add(described));
        return CompletableFuture.completedFuture(null);
    }

    /** Adds what was reported since the last call. */
    synchronized void moveTo(ObjectNode result) {
        result.set("errant", reported);
        result.set("errant_traces", traces.json());
        reported = Json.array();
        traces = new Traces();
    }
}
