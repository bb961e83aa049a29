package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** What a request to start a task holds, and how Connect's worker makes a task of it. */
final class TaskSetup {
    private static final String[] ADDED_KEYS = {"topics", "topics.regex"};

    private final Environment environment;
    private final Map<String, String> connectorConfig;
    private final Map<String, String> taskConfig = new LinkedHashMap<>();
    private final String taskClass;
    private final int taskId;
    private final Calls calls;
    private final DataConverter data;

    TaskSetup(Environment environment, JsonNode request) throws PluginFailure {
        this.environment = environment;
        connectorConfig = Json.config(request.path("config"));
        taskClass = request.path("task_class").asText();
        taskId = request.path("task_id").asInt();
        calls = environment.callsFor(connectorConfig);
        data = request.path("data").asBoolean() ? new DataConverter() : null;
        taskConfig.putAll(Json.config(request.path("task")));
        taskConfig.put("task.class", taskClass); // Connect adds these keys as well.
        for (String key : ADDED_KEYS) {
            if (connectorConfig.containsKey(key)) {
                taskConfig.put(key, connectorConfig.get(key));
            }
        }
    }

    Environment environment() {
        return environment;
    }

    Map<String, String> connectorConfig() {
        return connectorConfig;
    }

    Map<String, String> taskConfig() {
        return taskConfig;
    }

    Calls calls() {
        return calls;
    }

    /** What takes the place of the converters if Python runs them, else null. */
    DataConverter data() {
        return data;
    }

    ConnectorTaskId id() {
        return new ConnectorTaskId(connectorConfig.getOrDefault("name", "connector"), taskId);
    }

    <T extends Task> T newTask(Class<T> kind) throws PluginFailure {
        return calls.call("constructor", taskClass, () -> kind.cast(
                environment.plugins().newTask(calls.loader().loadClass(taskClass).asSubclass(Task.class))));
    }
}
