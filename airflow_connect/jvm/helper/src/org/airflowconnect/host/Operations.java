package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * What the parent can ask for.
 *
 * <ul>
 *   <li>{@code init}: load the plugins of some folders; first.
 *   <li>{@code describe}, {@code validate}: what Connect's REST API says about plugins and configurations.
 *   <li>{@code get_config}: values of a config provider.
 *   <li>{@code support}, {@code plan}, {@code watch}, {@code alter}, {@code stop_connector}: a connector.
 *   <li>{@code source}, {@code next}, {@code ack}: a task of a source.
 *   <li>{@code sink}, {@code put}, {@code pre_commit}: a task of a sink.
 *   <li>{@code group_committed}, {@code group_commit}: offsets of the group that it is a member of.
 *   <li>{@code open_stage}, {@code run_stage}: a converter, transformation or predicate in the chain of a connector that
 *       Python runs.
 *   <li>{@code memory}: how much of it is used. {@code echo}: a frame, read and written, for tests of this program.
 *   <li>{@code close}: stop everything; last.
 * </ul>
 */
final class Operations {
    private static final long DEFAULT_CALL_MS = 10_000;

    private Environment environment;
    private ConnectorHost connector;
    private SourceHost source;
    private SinkHost sink;
    private Stages stages;
    private boolean isClosed;
    private boolean isOrderly;

    /** Whether {@code close} was answered. */
    boolean isClosed() {
        return isClosed;
    }

    /** Whether this JVM has to end by exit instead of halt. */
    boolean isOrderly() {
        return isOrderly;
    }

    Reply answer(Request request) {
        try {
            return perform(request);
        } catch (Throwable error) { // Whatever it is, the parent has to know.
            return Reply.failed(error);
        }
    }

    private Reply perform(Request request) throws Throwable {
        JsonNode json = request.json();
        return switch (request.operation()) {
            case "init" -> {
                environment = new Environment(Json.texts(json.path("folders")));
                yield done();
            }
            case "describe" -> Reply.of(new Describer(environment).describe(json.path("classes")));
            case "validate" -> Reply.of(new Describer(environment).validate(Json.config(json.path("config"))));
            case "get_config" -> Reply.of(ProviderHost.get(environment, json));
            case "plan" -> {
                connector = new ConnectorHost(environment, json);
                yield Reply.of(connector.plan(json.path("max_tasks").asInt(1), json.path("late_ms").asLong()));
            }
            case "support" -> Reply.of(ConnectorHost.support(environment, json));
            case "watch" -> Reply.of(started(connector).watch());
            case "alter" -> Reply.of(BooleanNode.valueOf(ConnectorHost.alter(environment, json)));
            case "stop_connector" -> {
                ConnectorHost stopped = started(connector);
                connector = null;
                stopped.stop();
                yield done();
            }
            case "source" -> {
                source = new SourceHost(environment, json);
                yield done();
            }
            case "next" -> started(source).next(json.path("wait_ms").asLong());
            case "ack" -> Reply.of(started(source).acknowledge(json.path("frame").asInt()));
            case "sink" -> {
                sink = new SinkHost(environment, json);
                yield Reply.of(sink.started());
            }
            case "put" -> started(sink).put(json, request.body(), json.path("again").asBoolean());
            case "pre_commit" -> Reply.of(started(sink).preCommit(json.path("offsets")));
            case "group_committed" ->
                Reply.of(started(sink).committed(Json.topicPartitions(json.path("partitions"))));
            case "group_commit" -> {
                started(sink).commit(json.path("offsets"));
                yield done();
            }
            case "open_stage" -> {
                stages = stages == null ? new Stages(environment) : stages;
                stages.open(json);
                yield done();
            }
            case "run_stage" -> started(stages).run(json, request.body());
            case "memory" -> Reply.of(memory());
            case "echo" -> echo(request);
            case "close" -> Reply.of(close(json.path("orderly").asBoolean(), json.path("call_ms").asLong(DEFAULT_CALL_MS)));
            default -> throw new IllegalArgumentException("There is no operation " + request.operation() + ".");
        };
    }

    private static Reply done() {
        return Reply.of(NullNode.getInstance());
    }

    private static <T> T started(T object) {
        if (object == null) {
            throw new IllegalStateException("Nothing of that kind was started.");
        }
        return object;
    }

    private static ObjectNode memory() {
        Runtime runtime = Runtime.getRuntime();
        return Json.object()
                .put("used", runtime.totalMemory() - runtime.freeMemory())
                .put("max", runtime.maxMemory())
                .put("threads", Thread.activeCount());
    }

    private static Reply echo(Request request) {
        FrameReader reader = new FrameReader(request.json(), request.body());
        FrameWriter writer = new FrameWriter();
        for (int row = 0; row < reader.rows(); row++) {
            writer.add(reader.message(row));
        }
        ObjectNode json = Json.object().put("timestamp_type", reader.timestampType().id);
        writer.describe(json);
        return Reply.of(json, writer.buffers());
    }

    private ObjectNode close(boolean orderly, long callMs) {
        isClosed = true;
        isOrderly = orderly;
        ObjectNode result = Json.object();
        ArrayNode warnings = result.putArray("warnings");
        for (TaskHost task : new TaskHost[] {source, sink, stages}) {
            if (task != null) {
                task.close(callMs).forEach(warnings::add);
            }
        }
        if (connector != null) {
            connector.close(callMs).forEach(warnings::add);
        }
        if (sink != null) {
            sink.moveErrantTo(result);
        }
        return result;
    }
}
