package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/** The committed offsets of a source, which the parent has read from the offsets topic. */
final class OffsetStore implements OffsetStorageReader {
    private final Map<String, JsonNode> offsets = new HashMap<>();

    /** @param pairs {@code [[partition, offset], ...]} */
    OffsetStore(JsonNode pairs) {
        for (JsonNode pair : pairs) {
            offsets.put(canonical(Json.map(pair.get(0))), pair.get(1));
        }
    }

    @Override
    public <T> Map<String, Object> offset(Map<String, T> partition) {
        JsonNode offset = offsets.get(canonical(partition));
        return offset == null ? null : Json.map(offset); // A new map each time: plugins may change theirs.
    }

    @Override
    public <T> Map<Map<String, T>, Map<String, Object>> offsets(Collection<Map<String, T>> partitions) {
        Map<Map<String, T>, Map<String, Object>> found = new HashMap<>();
        partitions.forEach(partition -> found.put(partition, offset(partition)));
        return found;
    }

    /** The same text for equal partitions: members in the order of their names, no matter how numbers are held. */
    static String canonical(Map<String, ?> partition) {
        return sorted(OffsetJson.tree(partition, "partition")).toString();
    }

    private static JsonNode sorted(JsonNode node) {
        if (node.isObject()) {
            TreeMap<String, JsonNode> members = new TreeMap<>();
            node.properties().forEach(field -> members.put(field.getKey(), sorted(field.getValue())));
            return Json.object().setAll(members);
        }
        if (node.isArray()) {
            var items = Json.array();
            node.forEach(item -> items.add(sorted(item)));
            return items;
        }
        return node;
    }
}
