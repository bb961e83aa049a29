package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * The last offset of each source partition in a frame, in the order in which the partitions appeared.
 *
 * <p>Offsets become JSON before the next poll: plugins change the maps that they handed out.
 */
final class LastOffsets {
    private final Map<Map<String, ?>, Map<String, ?>> ofBatch = new LinkedHashMap<>();
    private final Map<String, JsonNode> ofFrame = new LinkedHashMap<>();

    /** A record without a source partition has no offset; one without an offset removes that of its partition. */
    @SuppressWarnings("unchecked")
    void add(SourceRecord record) {
        if (record.sourcePartition() != null || record.sourceOffset() != null) {
            ofBatch.put((Map<String, ?>) record.sourcePartition(), (Map<String, ?>) record.sourceOffset());
        }
    }

    /** Has to be called before the next poll. */
    void endBatch() {
        ofBatch.forEach((partition, offset) -> {
            ArrayNode pair = Json.array();
            pair.add(OffsetJson.tree(partition, "partition")).add(OffsetJson.tree(offset, "offset"));
            String key = partition == null ? "" : OffsetStore.canonical(partition);
            JsonNode first = ofFrame.get(key);
            ofFrame.put(key, first == null ? pair : Json.array().add(first.get(0)).add(pair.get(1)));
        });
        ofBatch.clear();
    }

    boolean isEmpty() {
        return ofFrame.isEmpty() && ofBatch.isEmpty();
    }

    ArrayNode json() {
        return Json.array().addAll(ofFrame.values());
    }
}
