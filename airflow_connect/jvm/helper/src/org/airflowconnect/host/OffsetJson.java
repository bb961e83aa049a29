package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.DoubleNode;
import com.fasterxml.jackson.databind.node.FloatNode;
import com.fasterxml.jackson.databind.node.LongNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.errors.DataException;

/**
 * Source partitions and offsets of plugins as JSON. Members keep the order of the plugin's map: Kafka Connect writes
 * them in it, and another order would be another key of the offsets topic. What JSON cannot hold exactly is refused,
 * because the plugin would get something else back.
 */
final class OffsetJson {
    private OffsetJson() {}

    /** @param what for messages: "offset" or "partition" */
    static JsonNode tree(Object value, String what) {
        if (value == null) {
            return NullNode.getInstance();
        }
        if (value instanceof String text) {
            return TextNode.valueOf(text);
        }
        if (value instanceof Boolean flag) {
            return BooleanNode.valueOf(flag);
        }
        if (value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte) {
            return LongNode.valueOf(((Number) value).longValue());
        }
        if (value instanceof Double number && Double.isFinite(number)) {
            return DoubleNode.valueOf(number);
        }
        if (value instanceof Float number && Float.isFinite(number)) {
            return FloatNode.valueOf(number);
        }
        if (value instanceof Map<?, ?> map) {
            return object(map, what);
        }
        if (value instanceof List<?> list) {
            ArrayNode items = Json.array();
            list.forEach(item -> items.add(tree(item, what)));
            return items;
        }
        String shown = value instanceof Number ? value + " (" + value.getClass().getName() + ")" : value.getClass().getTypeName();
        throw new DataException("A source " + what + " holds " + shown + ", which JSON has no exact form for.");
    }

    private static ObjectNode object(Map<?, ?> map, String what) {
        ObjectNode members = Json.object();
        map.forEach((name, value) -> {
            if (!(name instanceof String)) {
                throw new DataException("A source " + what + " has a key that is no text: " + name + ".");
            }
            members.set((String) name, tree(value, what));
        });
        return members;
    }
}
