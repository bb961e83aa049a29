package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.connect.data.ConnectSchema;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.DataException;

/** Schemas as JSON, with all that Connect knows of them. {@code airflow_connect/jvm/data/schemas.py} is the other side. */
final class SchemaJson {
    private static final int MOST_LEVELS = 100; // airflow_connect.api.schema.MAX_SCHEMA_DEPTH

    private SchemaJson() {}

    static ObjectNode write(Schema schema) {
        return write(schema, 1);
    }

    private static ObjectNode write(Schema schema, int level) {
        if (level > MOST_LEVELS) {
            throw new DataException("The schema has more than " + MOST_LEVELS + " levels, or contains itself.");
        }
        ObjectNode json = Json.object().put("type", schema.type().name());
        if (schema.isOptional()) {
            json.put("optional", true);
        }
        if (schema.name() != null) {
            json.put("name", schema.name());
        }
        if (schema.version() != null) {
            json.put("version", schema.version());
        }
        if (schema.doc() != null) {
            json.put("doc", schema.doc());
        }
        if (schema.parameters() != null && !schema.parameters().isEmpty()) {
            json.set("parameters", Json.tree(schema.parameters()));
        }
        if (schema.defaultValue() != null) {
            PackWriter packed = new PackWriter();
            PackedValues.write(packed, schema, schema.defaultValue());
            json.put("default", packed.take()); // Base64.
        }
        switch (schema.type()) {
            case ARRAY -> json.set("values", write(schema.valueSchema(), level + 1));
            case MAP -> {
                json.set("keys", write(schema.keySchema(), level + 1));
                json.set("values", write(schema.valueSchema(), level + 1));
            }
            case STRUCT -> {
                ArrayNode fields = json.putArray("fields");
                for (Field field : schema.fields()) {
                    fields.addArray().add(field.name()).add(write(field.schema(), level + 1));
                }
            }
            default -> { } // A type without parts.
        }
        return json;
    }

    static Schema read(JsonNode json) {
        Schema.Type type = Schema.Type.valueOf(json.path("type").asText().toUpperCase(Locale.ROOT));
        Schema keys = json.has("keys") ? read(json.get("keys")) : null;
        Schema values = json.has("values") ? read(json.get("values")) : null;
        List<Field> fields = type == Schema.Type.STRUCT ? new ArrayList<>() : null;
        for (JsonNode field : json.path("fields")) {
            fields.add(new Field(field.get(0).asText(), fields.size(), read(field.get(1))));
        }
        Map<String, String> parameters = json.has("parameters") ? new LinkedHashMap<>(Json.config(json.get("parameters"))) : null;
        Schema plain = new ConnectSchema(
                type, json.path("optional").asBoolean(), null, text(json, "name"),
                json.has("version") ? json.get("version").asInt() : null, text(json, "doc"), parameters, fields, keys, values);
        if (!json.has("default")) {
            return plain;
        }
        try {
            Object found = PackedValues.read(new PackReader(json.get("default").binaryValue()), plain);
            return new ConnectSchema(
                    type, plain.isOptional(), found, plain.name(), plain.version(), plain.doc(), parameters, fields, keys, values);
        } catch (IOException invalid) {
            throw new IllegalArgumentException("The default of a schema is no Base64.", invalid);
        }
    }

    private static String text(JsonNode json, String member) {
        return json.has(member) ? json.get(member).asText() : null;
    }
}
