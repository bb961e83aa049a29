package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;

/** Reads the records of a frame one by one: a frame may be far smaller than what converters make of it. */
final class FrameReader {
    private static final int BUFFERS = 16;
    private static final int TOPIC = 0;
    private static final int PARTITION = 1;
    private static final int OFFSET = 2;
    private static final int TIMESTAMP = 3;
    private static final int KEY = 4;
    private static final int VALUE = 7;
    private static final int HEADER_LISTS = 10;
    private static final int HEADER_NAMES = 11;
    private static final int HEADER_VALUE = 13;
    private static final int CURRENT_TOPIC = 16;
    private static final int CURRENT_PARTITION = 17;
    private static final int MOST_BUFFERS = 18;

    private final byte[] body;
    private final int rows;
    private final List<String> topics;
    private final TimestampType timestampType;
    private final int[] starts = new int[MOST_BUFFERS];
    private final int[] lengths = new int[MOST_BUFFERS];

    FrameReader(JsonNode json, byte[] body) {
        this.body = body;
        rows = json.path("rows").asInt();
        topics = Json.texts(json.path("topics"));
        timestampType = timestampType(json.path("timestamp_type").asInt());
        JsonNode sizes = json.path("buffers");
        if (rows > 0 && sizes.size() != BUFFERS && sizes.size() != MOST_BUFFERS) {
            throw new IllegalArgumentException("A frame cannot have " + sizes.size() + " buffers.");
        }
        long position = 0;
        for (int i = 0; i < sizes.size(); i++) {
            starts[i] = Math.toIntExact(position);
            lengths[i] = sizes.get(i).asInt();
            position += FrameWriter.aligned(lengths[i]);
        }
        if (position != body.length) {
            throw new IllegalArgumentException("The body has " + body.length + " bytes, not " + position + ".");
        }
    }

    int rows() {
        return rows;
    }

    TimestampType timestampType() {
        return timestampType;
    }

    Message message(int row) {
        return new Message(
                topics.get(Bytes.intAt(body, starts[TOPIC], row)),
                Bytes.intAt(body, starts[PARTITION], row),
                lengths[OFFSET] == 0 ? -1 : Bytes.longAt(body, starts[OFFSET], row),
                Bytes.longAt(body, starts[TIMESTAMP], row),
                binary(KEY, row),
                binary(VALUE, row),
                headers(row));
    }

    /** The topic that Python's transformations have left the record in; else the one that it was read from. */
    String currentTopic(int row) {
        return topics.get(Bytes.intAt(body, starts[lengths[CURRENT_TOPIC] > 0 ? CURRENT_TOPIC : TOPIC], row));
    }

    /** As {@link #currentTopic}; -1: not chosen. */
    int currentPartition(int row) {
        return Bytes.intAt(body, starts[lengths[CURRENT_PARTITION] > 0 ? CURRENT_PARTITION : PARTITION], row);
    }

    private Headers headers(int row) {
        RecordHeaders headers = new RecordHeaders();
        if (lengths[HEADER_LISTS] > 0) {
            int end = Bytes.intAt(body, starts[HEADER_LISTS], row + 1);
            for (int i = Bytes.intAt(body, starts[HEADER_LISTS], row); i < end; i++) {
                byte[] name = slice(HEADER_NAMES, i);
                headers.add(new String(name, StandardCharsets.UTF_8), binary(HEADER_VALUE, i));
            }
        }
        return headers;
    }

    /** A value of a column that starts with the buffer {@code column}: validity, offsets, data. */
    private byte[] binary(int column, int index) {
        boolean isValid = lengths[column + 1] > 0
                && (lengths[column] == 0 || (body[starts[column] + index / 8] >> index % 8 & 1) == 1);
        return isValid ? slice(column + 1, index) : null;
    }

    private byte[] slice(int offsets, int index) {
        int data = starts[offsets + 1];
        int from = Bytes.intAt(body, starts[offsets], index);
        int to = Bytes.intAt(body, starts[offsets], index + 1);
        return Arrays.copyOfRange(body, data + from, data + to);
    }

    private static TimestampType timestampType(int code) {
        for (TimestampType type : TimestampType.values()) {
            if (type.id == code) {
                return type;
            }
        }
        throw new IllegalArgumentException("There is no timestamp type " + code + ".");
    }
}
