package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.runtime.SinkConnectorConfig;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;
import org.apache.kafka.connect.sink.SinkTaskContext;

/** One task of a sink. Records are converted in small portions: all of a frame at once would fill the heap. */
final class SinkHost implements TaskHost {
    private static final int PORTION = 500; // max.poll.records of a worker's consumer

    private final SinkTask task;
    private final Calls calls;
    private final Chain<SinkRecord> chain;
    private final DataConverter data;
    private final SinkRecords records;
    private final SinkContext context;
    private final ErrantRecords errant = new ErrantRecords();
    private final Set<TopicPartition> assignment;
    private final GroupMember member; // null: the plugin needs none
    private final Map<TopicPartition, Long> written = new HashMap<>(); // by the group, when this task was started
    private final boolean stopOnError;
    private FrameReader frame;
    private int row;
    private List<SinkRecord> portion = List.of();

    SinkHost(Environment environment, JsonNode request) throws PluginFailure, GroupException {
        TaskSetup setup = new TaskSetup(environment, request);
        Map<String, String> connectorConfig = setup.connectorConfig();
        String connector = connectorConfig.get("connector.class");
        calls = setup.calls();
        stopOnError = request.path("stop_on_error").asBoolean();
        SinkConnectorConfig config = calls.call(
                "configuration", connector, () -> new SinkConnectorConfig(environment.plugins(), connectorConfig));
        data = setup.data();
        chain = calls.call("converters", connector, () -> Chain.open(environment, config, setup.id(), data));
        records = new SinkRecords(chain);
        task = setup.newTask(SinkTask.class);
        assignment = Json.topicPartitions(request.path("assignment"));
        context = new SinkContext(setup.taskConfig(), assignment, errant);
        JsonNode group = request.path("group");
        member = group.isObject() ? new GroupMember(group, assignment) : null;
        try {
            if (member != null) {
                member.join(Json.topicPartitions(group.path("partitions")), group.path("timeout_ms").asLong());
            }
            if (member != null) {
                member.committed(assignment).forEach((partition, offset) -> written.put(partition, offset.offset()));
            }
            SinkTaskContext given = member == null ? context : new GroupSinkContext(member.consumer(), context);
            calls.run("initialize", name(), () -> task.initialize(given));
            calls.run("start", name(), () -> task.start(setup.taskConfig()));
            calls.run("open", name(), () -> task.open(assignment));
        } catch (PluginFailure | GroupException | RuntimeException failure) {
            if (member != null) {
                member.close();
            }
            throw failure;
        }
    }

    /** What the task has asked for while it was started: some begin at offsets of their own. */
    ObjectNode started() {
        ObjectNode result = Json.object();
        if (member != null) {
            ArrayNode known = result.putArray("committed");
            written.forEach((partition, offset) -> known.add(Json.array(partition).add(offset)));
        }
        errant.moveTo(result);
        context.moveTo(result);
        return result;
    }

    /**
     * Puts the records of a frame, or what is left of the one before. Counts are those of this call. The body of the
     * answer has the numbers of the rows that transformations have dropped.
     *
     * @param isAgain the task asked for a repetition: its last portion is put again, then the rest
     */
    Reply put(JsonNode request, byte[] body, boolean isAgain) throws PluginFailure, GroupException {
        checkGroup();
        if (!isAgain) {
            if (!portion.isEmpty()) {
                throw new IllegalStateException("The last frame is not finished: repeat it.");
            }
            if (data != null) {
                data.learn(request.path("schemas"));
            }
            frame = new FrameReader(request, body);
            row = 0;
        }
        Outcome outcome = new Outcome();
        if (frame.rows() == 0) {
            deliver(outcome);
        }
        while (outcome.retry == null && (!portion.isEmpty() || row < frame.rows())) {
            if (portion.isEmpty()) {
                portion = nextPortion(outcome);
            }
            if (!portion.isEmpty()) { // Otherwise all of them failed or were dropped.
                deliver(outcome);
            }
        }
        return Reply.of(outcome.json(), outcome.dropped.size() == 0 ? List.of() : List.of(outcome.dropped));
    }

    private void deliver(Outcome outcome) throws PluginFailure, GroupException {
        try {
            calls.run("put", name(), () -> task.put(new ArrayList<>(portion)));
            outcome.delivered += portion.size();
            portion = List.of();
        } catch (PluginFailure failure) {
            checkGroup(); // It explains what the plugin has met.
            if (!Failures.isRetriable(failure.getCause())) {
                throw failure;
            }
            outcome.retry = Json.object()
                    .put("after_ms", context.takeTimeoutMs())
                    .put("message", Failures.text(failure.getCause()));
        }
    }

    private List<SinkRecord> nextPortion(Outcome outcome) throws PluginFailure {
        List<SinkRecord> converted = new ArrayList<>(Math.min(PORTION, frame.rows()));
        while (row < frame.rows() && converted.size() < PORTION) {
            int current = row++;
            try {
                SinkRecord record = convert(current);
                if (record == null) {
                    outcome.dropped.addInt(current);
                } else if (!isWritten(record)) {
                    converted.add(record);
                }
            } catch (RecordFailure failure) {
                outcome.failed.add(Json.array().add(current).add(Failures.record(failure, "", outcome.traces)));
                if (stopOnError) {
                    row = frame.rows();
                }
            }
        }
        return converted;
    }

    /** A record that the group has as written is converted only, because it may fail: the plugin has had it. */
    private boolean isWritten(SinkRecord record) {
        Long end = written.isEmpty() ? null
                : written.get(new TopicPartition(record.originalTopic(), record.originalKafkaPartition()));
        return end != null && record.originalKafkaOffset() < end;
    }

    private SinkRecord convert(int index) throws RecordFailure, PluginFailure {
        try {
            return calls.call("convert", name(), () -> records.convert(frame, index));
        } catch (PluginFailure wrapped) {
            if (wrapped.getCause() instanceof RecordFailure failure) {
                throw failure;
            }
            throw wrapped;
        }
    }

    /** What preCommit answers; null in it means that the plugin keeps its own offsets. */
    ObjectNode preCommit(JsonNode offsets) throws PluginFailure {
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        for (JsonNode each : offsets) {
            positions.put(Json.topicPartition(each), new OffsetAndMetadata(each.get(2).asLong()));
        }
        Map<TopicPartition, OffsetAndMetadata> answer = calls.call("preCommit", name(), () -> task.preCommit(positions));
        ObjectNode result = Json.object();
        if (answer == null) {
            result.putNull("offsets");
        } else {
            ArrayNode found = result.putArray("offsets");
            answer.forEach((partition, offset) -> found.add(Json.array(partition).add(offset.offset())));
        }
        errant.moveTo(result);
        context.moveTo(result);
        return result;
    }

    /** What the group has committed of some partitions, as {@code [topic, partition, offset, note]}. */
    ArrayNode committed(Set<TopicPartition> partitions) throws GroupException {
        ArrayNode found = Json.array();
        requireMember().committed(partitions).forEach((partition, offset) ->
                found.add(Json.array(partition).add(offset.offset()).add(offset.metadata())));
        return found;
    }

    /** Commits offsets with a note, as the member of the group: {@code [topic, partition, offset, note]}. */
    void commit(JsonNode offsets) throws GroupException {
        Map<TopicPartition, OffsetAndMetadata> given = new HashMap<>();
        for (JsonNode each : offsets) {
            given.put(Json.topicPartition(each), new OffsetAndMetadata(each.get(2).asLong(), each.get(3).asText()));
        }
        checkGroup();
        requireMember().commit(given);
    }

    private GroupMember requireMember() {
        if (member == null) {
            throw new IllegalStateException("This task is no member of a group.");
        }
        return member;
    }

    private void checkGroup() throws GroupException {
        if (member != null) {
            member.check();
        }
    }

    /** Adds records that were reported since the last answer; needed once more when the task has stopped. */
    void moveErrantTo(ObjectNode result) {
        errant.moveTo(result);
    }

    @Override
    public List<String> close(long callMs) {
        List<String> warnings = new ArrayList<>();
        Stopping stopping = new Stopping(callMs, calls, name(), warnings);
        stopping.run("close", () -> task.close(assignment));
        stopping.run("stop", task::stop);
        stopping.run("close of the converters", () -> warnings.addAll(chain.close()));
        if (member != null) {
            stopping.run("end of its threads", this::awaitThreads);
            stopping.run("leaving the group", member::close);
        }
        return warnings;
    }

    /** The plugin may close clients in threads of its own. One that cannot leave its group delays the next run. */
    private void awaitThreads() throws InterruptedException {
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getContextClassLoader() == calls.loader() && !thread.isDaemon() && thread.isAlive()
                    && thread != Thread.currentThread() && !thread.getName().equals("connect-request")) {
                thread.join();
            }
        }
    }

    private String name() {
        return task.getClass().getName();
    }

    /** What became of the records of one call. */
    private final class Outcome {
        private final ArrayNode failed = Json.array();
        private final Traces traces = new Traces();
        private int delivered;
        private final Bytes dropped = new Bytes();
        private ObjectNode retry;

        ObjectNode json() {
            ObjectNode json = Json.object().put("delivered", delivered).put("dropped", dropped.size() / Integer.BYTES);
            json.set("failed", failed);
            json.set("failed_traces", traces.json());
            errant.moveTo(json);
            json.set("retry", retry);
            context.moveTo(json);
            return json;
        }
    }
}
