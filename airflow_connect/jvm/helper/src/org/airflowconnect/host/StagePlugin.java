package org.airflowconnect.host;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.runtime.errors.Stage;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.ConverterConfig;
import org.apache.kafka.connect.storage.ConverterType;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** A plugin of a chain, configured as a worker configures it. */
final class StagePlugin {
    final Stage stage;
    final Object plugin;
    final Calls calls;

    /**
     * @param kind transformation, predicate, key_converter, value_converter or header_converter
     * @param config without prefixes
     */
    StagePlugin(Environment environment, String kind, String name, Map<String, String> config) throws PluginFailure {
        Calls loading = new Calls(environment.plugins(), environment.plugins().delegatingLoader());
        plugin = loading.call("constructor", name, () -> environment.plugins().newPlugin(name, null));
        calls = environment.callsFor(plugin.getClass());
        Map<String, Object> given = new HashMap<>(config);
        stage = switch (kind) {
            case "key_converter" -> Stage.KEY_CONVERTER;
            case "value_converter" -> Stage.VALUE_CONVERTER;
            case "header_converter" -> Stage.HEADER_CONVERTER;
            case "transformation", "predicate" -> Stage.TRANSFORMATION; // A worker counts predicates among them, too.
            default -> throw new IllegalArgumentException("There is no kind " + kind + ".");
        };
        calls.run("configure", name, () -> configure(given));
    }

    private void configure(Map<String, Object> config) {
        switch (stage) {
            case KEY_CONVERTER, VALUE_CONVERTER -> {
                ConverterType type = stage == Stage.KEY_CONVERTER ? ConverterType.KEY : ConverterType.VALUE;
                config.put(ConverterConfig.TYPE_CONFIG, type.getName());
                ((Converter) plugin).configure(config, type == ConverterType.KEY);
            }
            case HEADER_CONVERTER -> {
                config.put(ConverterConfig.TYPE_CONFIG, ConverterType.HEADER.getName());
                ((HeaderConverter) plugin).configure(config);
            }
            default -> {
                if (plugin instanceof Transformation<?> transformation) {
                    transformation.configure(config);
                } else {
                    ((Predicate<?>) plugin).configure(config);
                }
            }
        }
    }

    String name() {
        return plugin.getClass().getName();
    }

    /** The record as the transformation leaves it, or null: it drops it. */
    @SuppressWarnings("unchecked")
    <R extends ConnectRecord<R>> R apply(R record) {
        return ((Transformation<R>) plugin).apply(record);
    }

    @SuppressWarnings("unchecked")
    <R extends ConnectRecord<R>> boolean test(R record) {
        return ((Predicate<R>) plugin).test(record);
    }

    SchemaAndValue toConnect(Message message, String header) {
        return stage == Stage.HEADER_CONVERTER
                ? ((HeaderConverter) plugin).toConnectHeader(message.topic(), header, message.value())
                : ((Converter) plugin).toConnectData(message.topic(), message.headers(), message.value());
    }

    byte[] fromConnect(Message message, String header, SchemaAndValue data) {
        return stage == Stage.HEADER_CONVERTER
                ? ((HeaderConverter) plugin).fromConnectHeader(message.topic(), header, data.schema(), data.value())
                : ((Converter) plugin).fromConnectData(message.topic(), message.headers(), data.schema(), data.value());
    }

    void close() throws Exception {
        if (plugin instanceof AutoCloseable closeable) {
            closeable.close();
        }
    }
}
