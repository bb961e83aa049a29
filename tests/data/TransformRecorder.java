import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Plays transformations of Kafka Connect: lines with class, config and input come in, the same with output or error go out.
 *
 * Run with Java 17, connect-transforms and connect-json 4.3.1 and what they need:
 *   java -Duser.timezone=UTC -Duser.language=en -Duser.country=US -cp 'libs/*' TransformRecorder.java < transforms_asked.jsonl
 */
public class TransformRecorder {
    static final ObjectMapper JSON = new ObjectMapper();
    static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    static final JsonConverter SCHEMAS = new JsonConverter();

    public static void main(String[] arguments) throws Exception {
        Locale.setDefault(Locale.US);
        SCHEMAS.configure(Map.of("schemas.enable", "true"), false);
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode recording = (ObjectNode) JSON.readTree(line);
            recording.remove(List.of("output", "error", "phase"));
            play(recording);
            out.println(JSON.writeValueAsString(recording));
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static void play(ObjectNode recording) throws Exception {
        Map<String, String> config = new HashMap<>();
        recording.get("config").fields().forEachRemaining(entry -> config.put(entry.getKey(), entry.getValue().asText()));
        Object plugin = Class.forName(recording.get("class").asText()).getDeclaredConstructor().newInstance();
        String phase = "configure";
        try {
            Transformation transformation = (Transformation) plugin;
            transformation.configure(config);
            phase = "apply";
            ConnectRecord<?> result = transformation.apply(record(recording.get("input")));
            recording.put("phase", phase);
            recording.set("output", result == null ? NODES.nullNode() : json(result));
        } catch (Exception e) {
            ObjectNode error = NODES.objectNode();
            error.put("class", e.getClass().getName());
            error.put("message", e.getMessage());
            recording.put("phase", phase);
            recording.set("error", error);
        }
    }

    static ConnectRecord<?> record(JsonNode node) {
        Schema keySchema = schema(node.get("key_schema"));
        Schema valueSchema = schema(node.get("value_schema"));
        Object key = value(keySchema, node.get("key"));
        Object value = value(valueSchema, node.get("value"));
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode header : node.get("headers")) {
            Schema schema = schema(header.get(1));
            headers.add(header.get(0).asText(), value(schema, header.get(2)), schema);
        }
        Long timestamp = node.get("timestamp").isNull() ? null : Long.valueOf(node.get("timestamp").asLong());
        Integer partition = node.get("partition").isNull() ? null : Integer.valueOf(node.get("partition").asInt());
        String topic = node.get("topic").asText();
        if (node.get("record").asText().equals("sink")) {
            return new SinkRecord(topic, partition, keySchema, key, valueSchema, value, 42L, timestamp,
                TimestampType.CREATE_TIME, headers);
        }
        return new SourceRecord(Map.of("p", 1), Map.of("o", 2), topic, partition, keySchema, key, valueSchema, value, timestamp,
            headers);
    }

    static Schema schema(JsonNode node) {
        return node.isNull() ? null : SCHEMAS.asConnectSchema(node);
    }

    static Object value(Schema schema, JsonNode node) {
        if (node.isNull()) {
            return null;
        }
        if (node.isBoolean()) {
            return node.asBoolean();
        }
        if (node.isTextual()) {
            return node.asText();
        }
        String tag = node.fieldNames().next();
        JsonNode raw = node.get(tag);
        switch (tag) {
            case "int8": return (byte) raw.asInt();
            case "int16": return (short) raw.asInt();
            case "int32": return raw.asInt();
            case "int64": return raw.asLong();
            case "float32": return Float.parseFloat(raw.asText());
            case "float64": return Double.parseDouble(raw.asText());
            case "bytes": return Base64.getDecoder().decode(raw.asText());
            case "date": return new Date(raw.asLong());
            case "decimal":
                String[] parts = raw.asText().split("e-");
                return new BigDecimal(new BigInteger(parts[0]), Integer.parseInt(parts[1]));
            case "list":
                List<Object> list = new ArrayList<>();
                raw.forEach(item -> list.add(value(schema == null ? null : schema.valueSchema(), item)));
                return list;
            case "map":
                Map<Object, Object> map = new HashMap<>();
                raw.forEach(entry -> map.put(value(schema == null ? null : schema.keySchema(), entry.get(0)),
                    value(schema == null ? null : schema.valueSchema(), entry.get(1))));
                return map;
            default:
                Struct struct = new Struct(schema);
                raw.fields().forEachRemaining(
                    entry -> struct.put(entry.getKey(), value(schema.field(entry.getKey()).schema(), entry.getValue())));
                return struct;
        }
    }

    static ObjectNode json(ConnectRecord<?> record) {
        ObjectNode node = NODES.objectNode();
        node.put("topic", record.topic());
        node.put("partition", record.kafkaPartition());
        node.set("key_schema", json(record.keySchema()));
        node.set("key", json(record.key()));
        node.set("value_schema", json(record.valueSchema()));
        node.set("value", json(record.value()));
        node.put("timestamp", record.timestamp());
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(json(header.schema())).add(json(header.value()));
        }
        return node;
    }

    static JsonNode json(Schema schema) {
        return schema == null ? NODES.nullNode() : SCHEMAS.asJsonSchema(schema);
    }

    static JsonNode json(Object value) {
        if (value == null) {
            return NODES.nullNode();
        }
        if (value instanceof Boolean) {
            return NODES.booleanNode((Boolean) value);
        }
        if (value instanceof String) {
            return NODES.textNode((String) value);
        }
        ObjectNode node = NODES.objectNode();
        if (value instanceof Byte) {
            return node.put("int8", (Byte) value);
        }
        if (value instanceof Short) {
            return node.put("int16", (Short) value);
        }
        if (value instanceof Integer) {
            return node.put("int32", (Integer) value);
        }
        if (value instanceof Long) {
            return node.put("int64", (Long) value);
        }
        if (value instanceof Float) {
            return node.put("float32", value.toString());
        }
        if (value instanceof Double) {
            return node.put("float64", value.toString());
        }
        if (value instanceof byte[]) {
            return node.put("bytes", Base64.getEncoder().encodeToString((byte[]) value));
        }
        if (value instanceof ByteBuffer) {
            return node.put("bytes", Base64.getEncoder().encodeToString(((ByteBuffer) value).array()));
        }
        if (value instanceof Date) {
            return node.put("date", ((Date) value).getTime());
        }
        if (value instanceof BigDecimal) {
            BigDecimal decimal = (BigDecimal) value;
            return node.put("decimal", decimal.unscaledValue() + "e-" + decimal.scale());
        }
        return container(node, value);
    }

    static JsonNode container(ObjectNode node, Object value) {
        if (value instanceof List) {
            ArrayNode items = node.putArray("list");
            ((List<?>) value).forEach(item -> items.add(json(item)));
        } else if (value instanceof Map) {
            ArrayNode entries = node.putArray("map");
            new TreeMap<Object, Object>((Map<?, ?>) value).forEach((k, v) -> entries.addArray().add(json(k)).add(json(v)));
        } else {
            Struct struct = (Struct) value;
            ObjectNode fields = node.putObject("struct");
            for (Field field : struct.schema().fields()) {
                fields.set(field.name(), json(struct.getWithoutDefault(field.name())));
            }
        }
        return node;
    }
}
