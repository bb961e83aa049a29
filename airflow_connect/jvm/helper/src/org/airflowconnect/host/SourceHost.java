package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.runtime.SourceConnectorConfig;
import org.apache.kafka.connect.runtime.WorkerTransactionContext;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.source.SourceTaskContext;
import org.apache.kafka.connect.source.TransactionContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/** One task of a source. The parent decides when its run is over; this class only tells facts. */
final class SourceHost implements TaskHost {
    private static final int DEFAULT_ROWS = 20_000;
    private static final long DEFAULT_BYTES = 8L << 20;
    /** A poll that takes longer does not hold back the records of the polls before it. */
    private static final long LONG_POLL_MS = 50;

    private final SourceTask task;
    private final Calls calls;
    private final Chain<SourceRecord> chain;
    private final DataConverter data;
    private final SourcePoller poller;
    private final NavigableMap<Integer, List<SourceFrame.Delivered>> notAcknowledged = new TreeMap<>();
    private Object younger;
    private Throwable end;

    SourceHost(Environment environment, JsonNode request) throws PluginFailure {
        TaskSetup setup = new TaskSetup(environment, request);
        Map<String, String> config = setup.connectorConfig();
        calls = setup.calls();
        data = setup.data();
        chain = calls.call("converters", config.get("connector.class"), () -> Chain.open(
                environment, new SourceConnectorConfig(environment.plugins(), config, true), setup.id(), data));
        boolean definesTransactions = "connector".equalsIgnoreCase(config.get("transaction.boundary"));
        WorkerTransactionContext transaction = definesTransactions ? new WorkerTransactionContext() : null;
        task = setup.newTask(SourceTask.class);
        OffsetStore offsets = new OffsetStore(request.path("offsets"));
        calls.run("initialize", name(), () -> task.initialize(new Context(setup.taskConfig(), offsets, transaction)));
        calls.run("start", name(), () -> task.start(setup.taskConfig()));
        poller = new SourcePoller(
                task, calls, new SourceRecords(task, chain, transaction), limits(request),
                new Readiness(task.getClass(), config.get("snapshot.mode")));
        poller.start();
    }

    private static SourcePoller.Limits limits(JsonNode request) {
        return new SourcePoller.Limits(
                request.path("max_rows").asInt(DEFAULT_ROWS),
                request.path("max_bytes").asLong(DEFAULT_BYTES),
                request.path("stop_on_error").asBoolean());
    }

    /** The next frame, or what is known about a source that has none within that time. */
    Reply next(long waitMs) throws Throwable {
        if (end != null) {
            throw end;
        }
        long deadline = System.nanoTime() + waitMs * 1_000_000;
        while (true) {
            long leftMs = Math.max(0, (deadline - System.nanoTime()) / 1_000_000);
            Object found = take(Math.min(leftMs, LONG_POLL_MS));
            if (found instanceof SourceFrame frame) {
                if (!frame.delivered().isEmpty()) {
                    notAcknowledged.put(frame.number(), frame.delivered());
                }
                return Reply.of(describe(frame), frame.writer.buffers());
            }
            if (found instanceof Throwable error) {
                end = error;
                throw error;
            }
            ObjectNode idle = leftMs > LONG_POLL_MS ? null : poller.idle();
            if (idle != null) {
                return Reply.of(idle);
            }
        }
    }

    /** With what is known about the source if it has nothing more: heartbeats may come before any wait has ended. */
    private ObjectNode describe(SourceFrame frame) {
        ObjectNode json = frame.json();
        if (data != null) {
            json.set("schemas", data.takeFresh());
        }
        ObjectNode idle = younger == null ? poller.idle() : null;
        if (idle != null) {
            json.set("idle", idle);
        }
        return json;
    }

    /** In the order in which the poller made them: the frame that it offers is younger than one that is ready. */
    private Object take(long waitMs) throws InterruptedException {
        if (younger != null) {
            Object kept = younger;
            younger = null;
            return kept;
        }
        Object found = poller.take(waitMs);
        if (found == null) {
            younger = poller.takeOffered();
            found = younger == null ? null : poller.take(0);
            if (found == null) {
                found = younger;
                younger = null;
            }
        }
        return found;
    }

    /** The frames up to this one are stored. A worker logs what plugins throw here, so they are warnings. */
    ObjectNode acknowledge(int frame) {
        ObjectNode result = Json.object();
        ArrayNode warnings = result.putArray("warnings");
        NavigableMap<Integer, List<SourceFrame.Delivered>> stored = notAcknowledged.headMap(frame, true);
        for (List<SourceFrame.Delivered> records : stored.values()) {
            for (SourceFrame.Delivered each : records) {
                warnOf(warnings, "commitRecord", () -> task.commitRecord(each.record(), each.metadata()));
            }
        }
        stored.clear();
        warnOf(warnings, "commit", task::commit);
        return result;
    }

    private void warnOf(ArrayNode warnings, String method, Calls.Action action) {
        try {
            calls.run(method, name(), action);
        } catch (PluginFailure failure) {
            if (warnings.size() < MOST_WARNINGS) {
                warnings.add(method + " has failed: " + Failures.text(failure.getCause()));
            }
        }
    }

    @Override
    public List<String> close(long callMs) {
        List<String> warnings = new ArrayList<>();
        Stopping stopping = new Stopping(callMs, calls, name(), warnings);
        poller.stopSoon();
        try {
            boolean hasEnded = poller.join(callMs / 2);
            stopping.run("stop", task::stop);
            if (!hasEnded) {
                poller.interrupt();
                if (!poller.join(callMs / 2)) {
                    stopping.warn("poll did not return, not even when it was interrupted:\n" + poller.stack());
                }
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        stopping.run("close of the converters", () -> warnings.addAll(chain.close()));
        return warnings;
    }

    private String name() {
        return task.getClass().getName();
    }

    /** What a source task gets from its worker. */
    private static final class Context implements SourceTaskContext {
        private final Map<String, String> config;
        private final OffsetStore offsets;
        private final WorkerTransactionContext transaction;
        private final PluginMetrics metrics = new NoMetrics();

        Context(Map<String, String> config, OffsetStore offsets, WorkerTransactionContext transaction) {
            this.config = config;
            this.offsets = offsets;
            this.transaction = transaction;
        }

        @Override
        public Map<String, String> configs() {
            return config;
        }

        @Override
        public OffsetStorageReader offsetStorageReader() {
            return offsets;
        }

        @Override
        public TransactionContext transactionContext() {
            return transaction;
        }

        @Override
        public PluginMetrics pluginMetrics() {
            return metrics;
        }
    }
}
