package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.ArrayList;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;

/**
 * Connect's data as bytes that only the parent understands: in the place of converters where Python runs the others.
 * A value is the number of its schema, or nil, and the value. Schemas cross once, beside the first frame that needs them;
 * each side numbers its own. Null without a schema is null.
 */
final class DataConverter implements Converter, HeaderConverter {
    private static final int MOST_KNOWN = 10_000;

    private final Map<Schema, Integer> known = new IdentityHashMap<>();
    private final Map<JsonNode, Integer> numbers = new HashMap<>();
    private final List<Schema> learned = new ArrayList<>();
    private final PackWriter out = new PackWriter();
    private ArrayNode fresh = Json.array();

    /** Takes the schemas of a request that it does not know yet; a null before them: forget those of earlier requests. */
    synchronized void learn(JsonNode schemas) {
        for (JsonNode json : schemas) {
            if (json.isNull()) {
                learned.clear();
            } else {
                learned.add(SchemaJson.read(json));
            }
        }
    }

    /**
     * Forgets the schemas that were written, and tells the parent to do so, if they are many: plugins may make one for
     * each record. No value may be on its way that the parent has not read.
     */
    synchronized void forgetIfMany() {
        if (numbers.size() >= MOST_KNOWN && fresh.isEmpty()) {
            numbers.clear();
            known.clear();
            fresh.addNull();
        }
    }

    /** The schemas that were numbered since the last call, in the order of their numbers. */
    synchronized ArrayNode takeFresh() {
        ArrayNode taken = fresh;
        fresh = Json.array();
        return taken;
    }

    @Override
    public synchronized byte[] fromConnectData(String topic, Schema schema, Object value) {
        if (schema == null && value == null) {
            return null;
        }
        try {
            out.array(2);
            if (schema == null) {
                out.nil();
                PackedValues.writeSchemaless(out, value, 1);
            } else {
                out.integer(number(schema));
                PackedValues.write(out, schema, value);
            }
            return out.take();
        } catch (RuntimeException | Error failed) {
            out.take();
            throw failed;
        }
    }

    @Override
    public synchronized SchemaAndValue toConnectData(String topic, byte[] bytes) {
        if (bytes == null) {
            return SchemaAndValue.NULL;
        }
        PackReader in = new PackReader(bytes);
        in.array();
        if (in.nil()) {
            return new SchemaAndValue(null, PackedValues.readSchemaless(in));
        }
        Schema schema = learned.get((int) in.integer());
        return new SchemaAndValue(schema, PackedValues.read(in, schema));
    }

    @Override
    public SchemaAndValue toConnectHeader(String topic, String header, byte[] bytes) {
        return toConnectData(topic, bytes);
    }

    @Override
    public byte[] fromConnectHeader(String topic, String header, Schema schema, Object value) {
        return fromConnectData(topic, schema, value);
    }

    /** Plugins may make a schema for each record: those that are equal have one number. */
    private int number(Schema schema) {
        Integer number = known.get(schema);
        if (number == null) {
            JsonNode json = SchemaJson.write(schema);
            number = numbers.get(json);
            if (number == null) {
                number = numbers.size();
                numbers.put(json, number);
                fresh.add(json);
            }
            if (known.size() >= MOST_KNOWN) {
                known.clear();
            }
            known.put(schema, number);
        }
        return number;
    }

    @Override
    public void configure(Map<String, ?> config, boolean isKey) {}

    @Override
    public void configure(Map<String, ?> config) {}

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return ConnectVersion.get();
    }

    @Override
    public void close() {}
}
