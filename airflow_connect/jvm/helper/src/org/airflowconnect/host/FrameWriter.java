package org.airflowconnect.host;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.Header;

/**
 * Collects records in the 16 buffers of a frame, which are those of Arrow's arrays: the parent reads them without
 * copying. {@code airflow_connect/jvm/frames.py} is the other side.
 */
final class FrameWriter {
    static final int ALIGNMENT = 8;
    private static final int FIXED_BYTES_OF_A_ROW = 24;

    private final Map<String, Integer> topics = new LinkedHashMap<>();
    private final Bytes topic = new Bytes();
    private final Bytes partition = new Bytes();
    private final Bytes offset = new Bytes();
    private final Bytes timestamp = new Bytes();
    private final BinaryColumn keys = new BinaryColumn();
    private final BinaryColumn values = new BinaryColumn();
    private final Bytes headerLists = new Bytes();
    private final BinaryColumn headerNames = new BinaryColumn();
    private final BinaryColumn headerValues = new BinaryColumn();

    FrameWriter() {
        headerLists.addInt(0);
    }

    static long aligned(long size) {
        return (size + ALIGNMENT - 1) & -ALIGNMENT;
    }

    void add(Message message) {
        topic.addInt(topics.computeIfAbsent(message.topic(), name -> topics.size()));
        partition.addInt(message.partition());
        if (message.offset() >= 0) {
            offset.addLong(message.offset());
        }
        timestamp.addLong(message.timestamp());
        keys.add(message.key());
        values.add(message.value());
        for (Header header : message.headers()) {
            headerNames.add(header.key().getBytes(StandardCharsets.UTF_8));
            headerValues.add(header.value());
        }
        headerLists.addInt(headerNames.rows());
    }

    int rows() {
        return keys.rows();
    }

    /** About how large the frame is. */
    long bytes() {
        return (long) rows() * FIXED_BYTES_OF_A_ROW
                + keys.dataBytes()
                + values.dataBytes()
                + headerNames.dataBytes()
                + headerValues.dataBytes();
    }

    List<Bytes> buffers() {
        boolean hasKeys = !keys.isAllNull();
        boolean hasValues = !values.isAllNull();
        boolean hasHeaders = headerNames.rows() > 0;
        return List.of(
                topic,
                partition,
                offset,
                timestamp,
                hasKeys ? keys.validity() : Bytes.NONE,
                hasKeys ? keys.offsets() : Bytes.NONE,
                hasKeys ? keys.data() : Bytes.NONE,
                hasValues ? values.validity() : Bytes.NONE,
                hasValues ? values.offsets() : Bytes.NONE,
                hasValues ? values.data() : Bytes.NONE,
                hasHeaders ? headerLists : Bytes.NONE,
                hasHeaders ? headerNames.offsets() : Bytes.NONE,
                hasHeaders ? headerNames.data() : Bytes.NONE,
                hasHeaders ? headerValues.validity() : Bytes.NONE,
                hasHeaders ? headerValues.offsets() : Bytes.NONE,
                hasHeaders ? headerValues.data() : Bytes.NONE);
    }

    /** Adds what the parent needs to read the buffers. */
    void describe(ObjectNode json) {
        json.put("rows", rows());
        ArrayNode names = json.putArray("topics");
        topics.keySet().forEach(names::add);
        ArrayNode lengths = json.putArray("buffers");
        buffers().forEach(buffer -> lengths.add(buffer.size()));
    }
}
