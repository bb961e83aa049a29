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
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Values;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;

/**
 * What Java and Kafka Connect make of numbers, of odd JSON documents and of null: lines with a question come in, the same with
 * output or error go out.
 *
 * Run with Java 17, connect-api and connect-json 4.3.1 and what they need:
 *   java -Duser.timezone=UTC -Duser.language=en -Duser.country=US -cp 'libs/*' NumberRecorder.java < numbers_asked.jsonl
 */
public class NumberRecorder {
    static final ObjectMapper JSON = new ObjectMapper();
    static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    public static void main(String[] arguments) throws Exception {
        Locale.setDefault(Locale.US);
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode recording = (ObjectNode) JSON.readTree(line);
            recording.remove(List.of("output", "error"));
            try {
                recording.set("output", play(recording));
            } catch (Exception | StackOverflowError e) {
                ObjectNode error = NODES.objectNode();
                error.put("class", e.getClass().getName());
                error.put("message", shortened(e.getMessage()));
                if (e.getCause() != null) {
                    Throwable root = e.getCause();
                    while (root.getCause() != null) {
                        root = root.getCause();
                    }
                    error.put("cause_class", root.getClass().getName());
                    error.put("cause_message", shortened(root.getMessage()));
                }
                recording.set("error", error);
            }
            out.println(JSON.writeValueAsString(recording));
        }
    }

    static String shortened(String text) {
        return text == null || text.length() <= 300 ? text : text.substring(0, 300);
    }

    static byte[] bytes(JsonNode q) {
        if (q.has("base64")) {
            return Base64.getDecoder().decode(q.get("base64").asText());
        }
        return text(q).getBytes(StandardCharsets.UTF_8);
    }

    /** The text of a question: `text`, or before + repeat * times + after. */
    static String text(JsonNode q) {
        if (q.has("repeat")) {
            JsonNode r = q.get("repeat");
            StringBuilder s = new StringBuilder();
            for (JsonNode piece : r) {
                s.append(piece.get(0).asText().repeat(piece.get(1).asInt()));
            }
            return s.toString();
        }
        return q.get("text").isNull() ? null : q.get("text").asText();
    }

    static JsonNode play(ObjectNode q) throws Exception {
        String op = q.get("op").asText();
        switch (op) {
            case "JsonConverter": {
                JsonConverter converter = new JsonConverter();
                Map<String, String> config = new HashMap<>();
                q.get("config").fields().forEachRemaining(e -> config.put(e.getKey(), e.getValue().asText()));
                converter.configure(config, false);
                return both(converter.toConnectData("t", bytes(q)));
            }
            case "SimpleHeaderConverter":
                return both(new SimpleHeaderConverter().toConnectHeader("t", "h", bytes(q)));
            case "Byte.parseByte": return NODES.textNode(Byte.toString(Byte.parseByte(text(q))));
            case "Short.parseShort": return NODES.textNode(Short.toString(Short.parseShort(text(q))));
            case "Integer.parseInt": return NODES.textNode(Integer.toString(Integer.parseInt(text(q))));
            case "Long.parseLong": return NODES.textNode(Long.toString(Long.parseLong(text(q))));
            case "Float.parseFloat": return NODES.textNode(Float.toString(Float.parseFloat(text(q))));
            case "Double.parseDouble": return NODES.textNode(Double.toString(Double.parseDouble(text(q))));
            case "BigDecimal": {
                BigDecimal d = new BigDecimal(text(q));
                return tagged(d);
            }
            case "BigDecimal.longValue": return NODES.textNode(Long.toString(new BigDecimal(text(q)).longValue()));
            case "ConfigDef": 
                return NODES.textNode(String.valueOf(
                    ConfigDef.parseType("k", text(q), ConfigDef.Type.valueOf(q.get("type").asText()))));
            case "parseString": {
                return both(Values.parseString(text(q)));
            }
            default:
                if (op.startsWith("Values.")) {
                    Object value = value(q.get("input"));
                    Object result = Values.class.getMethod(op.substring(7), Schema.class, Object.class).invoke(null, null, value);
                    return tagged(result);
                }
                throw new IllegalArgumentException(op);
        }
    }

    static Object value(JsonNode node) {
        if (node.isNull()) return null;
        if (node.isBoolean()) return node.asBoolean();
        if (node.isTextual()) return node.asText();
        String tag = node.fieldNames().next();
        JsonNode raw = node.get(tag);
        switch (tag) {
            case "int8": return (byte) raw.asInt();
            case "int16": return (short) raw.asInt();
            case "int32": return raw.asInt();
            case "int64": return raw.asLong();
            case "float32": return Float.parseFloat(raw.asText());
            case "float64": return Double.parseDouble(raw.asText());
            case "decimal": return new BigDecimal(raw.asText());
            case "list": {
                List<Object> list = new ArrayList<>();
                raw.forEach(item -> list.add(value(item)));
                return list;
            }
            default: throw new IllegalArgumentException(tag);
        }
    }

    static JsonNode both(SchemaAndValue found) {
        ObjectNode node = NODES.objectNode();
        node.put("schema", found.schema() == null ? null
            : found.schema().name() != null ? found.schema().name() : found.schema().type().getName());
        node.set("value", tagged(found.value()));
        return node;
    }

    static JsonNode tag(String name, JsonNode value) {
        ObjectNode node = NODES.objectNode();
        node.set(name, value);
        return node;
    }

    static JsonNode tagged(Object value) {
        if (value == null) return NODES.nullNode();
        if (value instanceof Boolean) return NODES.booleanNode((Boolean) value);
        if (value instanceof String) {
            String s = (String) value;
            return s.length() > 300 ? tag("text_length", NODES.numberNode(s.length())) : NODES.textNode(s);
        }
        if (value instanceof Byte) return tag("int8", NODES.numberNode((Byte) value));
        if (value instanceof Short) return tag("int16", NODES.numberNode((Short) value));
        if (value instanceof Integer) return tag("int32", NODES.numberNode((Integer) value));
        if (value instanceof Long) return tag("int64", NODES.textNode(value.toString()));
        if (value instanceof Float) return tag("float32", NODES.textNode(value.toString()));
        if (value instanceof Double) return tag("float64", NODES.textNode(value.toString()));
        if (value instanceof BigDecimal) {
            BigDecimal d = (BigDecimal) value;
            String digits = d.unscaledValue().toString();
            if (digits.length() > 300) return tag("decimal_digits", NODES.numberNode(d.precision()));
            return tag("decimal", NODES.textNode(digits + "e-" + d.scale()));
        }
        if (value instanceof Date) return tag("date", NODES.numberNode(((Date) value).getTime()));
        if (value instanceof byte[]) return tag("bytes", NODES.numberNode(((byte[]) value).length));
        if (value instanceof List) {
            List<?> list = (List<?>) value;
            int depth = 0;
            ArrayNode items = NODES.arrayNode();
            Object inner = value;
            while (inner instanceof List) {
                depth++;
                inner = ((List<?>) inner).isEmpty() ? null : ((List<?>) inner).get(0);
            }
            if (depth > 50) return tag("list_depth", NODES.numberNode(depth));
            list.forEach(item -> items.add(tagged(item)));
            return tag("list", items);
        }
        if (value instanceof Map) {
            ArrayNode items = NODES.arrayNode();
            Map<?, ?> map = (Map<?, ?>) value;
            int depth = 0;
            Object inner = value;
            while (inner instanceof Map) {
                depth++;
                inner = ((Map<?, ?>) inner).isEmpty() ? null : ((Map<?, ?>) inner).values().iterator().next();
            }
            if (depth > 50) return tag("map_depth", NODES.numberNode(depth));
            if (map.size() == 1 && String.valueOf(map.keySet().iterator().next()).length() > 300) {
                return tag("key_length", NODES.numberNode(String.valueOf(map.keySet().iterator().next()).length()));
            }
            map.forEach((k, v) -> items.add(NODES.arrayNode().add(tagged(k)).add(tagged(v))));
            return tag("map", items);
        }
        if (value instanceof Struct) {
            Struct struct = (Struct) value;
            ObjectNode items = NODES.objectNode();
            for (Field field : struct.schema().fields()) items.set(field.name(), tagged(struct.get(field)));
            return tag("struct", items);
        }
        throw new IllegalArgumentException(value.getClass().getName());
    }
}
