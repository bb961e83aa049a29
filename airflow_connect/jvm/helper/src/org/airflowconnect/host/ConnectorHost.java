package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.source.SourceConnector;

/** One connector: plans its tasks, and stays started while they run, because some work in threads of their own. */
final class ConnectorHost {
    private static final long PAUSE_NANOS = 50_000_000;

    private final Calls calls;
    private final Connector connector;
    private final Map<String, String> config;
    private final ConnectorContexts context;
    private final String name;

    ConnectorHost(Environment environment, JsonNode request) throws PluginFailure {
        config = Json.config(request.path("config"));
        connector = environment.newConnector(config);
        name = connector.getClass().getName();
        calls = environment.callsFor(connector.getClass());
        context = new ConnectorContexts(new OffsetStore(request.path("offsets")));
    }

    /** @param lateMs how long a connector that has no tasks yet may take to ask for a reconfiguration, and get some */
    ObjectNode plan(int maxTasks, long lateMs) throws PluginFailure {
        ObjectNode plan = Json.object();
        boolean isSource = connector instanceof SourceConnector;
        plan.put("kind", isSource ? "source" : "sink");
        calls.run("initialize", name, () -> connector.initialize(context));
        calls.run("start", name, () -> connector.start(config));
        List<Map<String, String>> tasks = calls.get("taskConfigs", name, () -> connector.taskConfigs(maxTasks));
        long deadline = System.nanoTime() + lateMs * 1_000_000;
        while (tasks.isEmpty() && context.raised() == null && System.nanoTime() < deadline) {
            LockSupport.parkNanos(PAUSE_NANOS);
            if (context.isReconfigurationRequested()) {
                tasks = calls.get("taskConfigs", name, () -> connector.taskConfigs(maxTasks));
            }
        }
        plan.set("tasks", Json.tree(tasks));
        plan.put("task_class", calls.get("taskClass", name, connector::taskClass).getName());
        plan.put("version", calls.call("version", name, connector::version));
        if (context.raised() != null) {
            throw new PluginFailure("raiseError", name, context.raised());
        }
        return plan;
    }

    /** What a source promises with a configuration. As in a worker, the connector is not started. */
    static ObjectNode support(Environment environment, JsonNode request) throws PluginFailure {
        ConnectorHost unstarted = new ConnectorHost(environment, request);
        Map<String, String> config = unstarted.config;
        ObjectNode support = Json.object();
        ArrayNode warnings = support.putArray("warnings");
        if (unstarted.connector instanceof SourceConnector source) {
            support.put("exactly_once",
                    unstarted.answer("exactlyOnceSupport", () -> source.exactlyOnceSupport(config), warnings));
            support.put("boundaries", unstarted.answer(
                    "canDefineTransactionBoundaries", () -> source.canDefineTransactionBoundaries(config), warnings));
        }
        return support;
    }

    ObjectNode watch() {
        return context.report();
    }

    void stop() throws PluginFailure {
        calls.run("stop", name, connector::stop);
    }

    /** Stops the connector within a limited time; a failure is a warning. */
    List<String> close(long callMs) {
        List<String> warnings = new ArrayList<>();
        new Stopping(callMs, calls, name, warnings).run("stop", connector::stop);
        return warnings;
    }

    /** Whether the connector has taken care of its offsets being set; offsets of sinks are {@code [topic, partition, offset]}. */
    static boolean alter(Environment environment, JsonNode request) throws PluginFailure {
        Map<String, String> config = Json.config(request.path("config"));
        Connector connector = environment.newConnector(config);
        Calls calls = environment.callsFor(connector.getClass());
        String name = connector.getClass().getName();
        JsonNode offsets = request.path("offsets");
        if (connector instanceof SourceConnector source) {
            Map<Map<String, ?>, Map<String, ?>> altered = new HashMap<>();
            offsets.forEach(pair -> altered.put(Json.map(pair.get(0)), Json.map(pair.get(1))));
            return calls.call("alterOffsets", name, () -> source.alterOffsets(config, altered));
        }
        Map<TopicPartition, Long> altered = new HashMap<>();
        for (JsonNode each : offsets) {
            altered.put(Json.topicPartition(each), each.get(2).isNull() ? null : each.get(2).asLong());
        }
        return calls.call("alterOffsets", name, () -> ((SinkConnector) connector).alterOffsets(config, altered));
    }

    /** The answer to a question that a connector need not be able to answer: null, and a warning if it threw. */
    private String answer(String method, Callable<?> question, ArrayNode warnings) {
        try {
            Object answer = calls.call(method, name, question::call);
            return answer == null ? null : answer.toString();
        } catch (PluginFailure failure) {
            warnings.add(method + " has failed: " + Failures.text(failure.getCause()));
            return null;
        }
    }
}
