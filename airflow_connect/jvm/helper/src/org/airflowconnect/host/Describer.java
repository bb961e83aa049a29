package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.kafka.common.config.Config;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigValue;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.runtime.AbstractHerder;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Answers what Connect's REST API answers about plugins: their versions, their keys, and what is wrong with a value. */
final class Describer {
    private static final String NO_VERSION = "undefined"; // Connect's own word.

    private final Environment environment;

    Describer(Environment environment) {
        this.environment = environment;
    }

    /** Each class on its own: one that cannot be loaded does not hide the others. */
    ArrayNode describe(JsonNode classes) {
        ArrayNode all = Json.array();
        for (JsonNode each : classes) {
            String name = each.get(1).asText();
            ObjectNode described = all.addObject().put("kind", each.get(0).asText()).put("class", name);
            try {
                describe(described, name);
            } catch (PluginFailure failure) {
                described.put("error", Failures.text(failure.getCause()));
            }
        }
        return all;
    }

    private void describe(ObjectNode described, String name) throws PluginFailure {
        Calls loading = new Calls(environment.plugins(), environment.plugins().delegatingLoader());
        Object plugin = loading.call("constructor", name, () -> environment.plugins().newPlugin(name, null));
        Calls calls = environment.callsFor(plugin.getClass());
        String version = calls.call(
                "version", name, () -> plugin instanceof Versioned versioned ? versioned.version() : NO_VERSION);
        ConfigDef definition = plugin instanceof Connector connector
                ? calls.get("config", name, connector::config)
                : calls.call("config", name, () -> definition(plugin));
        described.put("version", version);
        ArrayNode keys = described.putArray("config");
        if (definition != null) {
            definition.configKeys().values().forEach(key -> keys.add(Json.tree(AbstractHerder.convertConfigKey(key))));
        }
    }

    /** The keys of a plugin that is no connector; null: it has none. */
    private static ConfigDef definition(Object plugin) {
        if (plugin instanceof Transformation<?> transformation) {
            return transformation.config();
        }
        if (plugin instanceof Predicate<?> predicate) {
            return predicate.config();
        }
        if (plugin instanceof HeaderConverter converter) {
            return converter.config();
        }
        return plugin instanceof Converter converter ? converter.config() : null;
    }

    /**
     * The connector's own validation, which may open connections. `against_definition` has the keys whose values cannot
     * be right; what is wrong with others may be over soon, such as a server that is not there.
     */
    JsonNode validate(Map<String, String> config) throws PluginFailure {
        Connector connector = environment.newConnector(config);
        String name = connector.getClass().getName();
        Calls calls = environment.callsFor(connector.getClass());
        ConfigDef definition = calls.get("config", name, connector::config);
        Config validated = calls.get("validate", name, () -> connector.validate(config));
        return calls.call("validate", name, () -> {
            ObjectNode infos = (ObjectNode) Json.tree(AbstractHerder.generateResult(
                    name, definition.configKeys(), validated.configValues(), definition.groups()));
            ArrayNode against = infos.putArray("against_definition");
            for (ConfigValue value : definition.validate(config)) {
                if (!value.errorMessages().isEmpty()) {
                    against.add(value.name());
                }
            }
            return infos;
        });
    }
}
