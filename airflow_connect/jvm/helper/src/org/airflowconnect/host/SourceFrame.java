package org.airflowconnect.host;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.source.SourceRecord;

/** Records of one or more polls, with their offsets: what the parent writes in one transaction. */
final class SourceFrame {
    private static final int UNKNOWN = -1;
    private static final long BYTES_OF_A_FAILURE = 1024;

    /** A record for commitRecord; without metadata if it was dropped, as Connect does it. */
    record Delivered(SourceRecord record, RecordMetadata metadata) {}

    final FrameWriter writer = new FrameWriter();
    final LastOffsets offsets = new LastOffsets();
    private final int number;
    private final List<Delivered> delivered = new ArrayList<>();
    private final ArrayNode failed = Json.array();
    private final Traces traces = new Traces();
    private int dropped;
    private String mark;
    private boolean continues;

    SourceFrame(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    void add(Message message) {
        writer.add(message);
    }

    /** About how large the frame is, with its descriptions of failed records. */
    long bytes() {
        return writer.bytes() + failed.size() * BYTES_OF_A_FAILURE;
    }

    void drop() {
        dropped++;
    }

    void fail(RecordFailure failure, String where) {
        failed.add(Failures.record(failure, where, traces));
    }

    /** Keeps a record until the parent has stored it; partition and offset are known to the parent only. */
    void keep(SourceRecord record, Message message) {
        RecordMetadata metadata = message == null ? null : new RecordMetadata(
                new TopicPartition(message.topic(), Math.max(0, message.partition())),
                UNKNOWN, UNKNOWN, message.timestamp(),
                message.key() == null ? UNKNOWN : message.key().length,
                message.value() == null ? UNKNOWN : message.value().length);
        delivered.add(new Delivered(record, metadata));
    }

    List<Delivered> delivered() {
        return delivered;
    }

    /** @param kind "commit" or "abort": what the plugin asks for after the records of this frame */
    void mark(String kind) {
        mark = kind;
    }

    /** The next frame has records of the same poll. */
    void markContinued() {
        continues = true;
    }

    boolean isEmpty() {
        return writer.rows() == 0 && offsets.isEmpty() && dropped == 0 && failed.isEmpty() && mark == null;
    }

    ObjectNode json() {
        ObjectNode json = Json.object().put("frame", number);
        writer.describe(json);
        json.set("offsets", offsets.json());
        json.put("mark", mark).put("dropped", dropped).put("continues", continues);
        json.set("failed", failed);
        json.set("failed_traces", traces.json());
        return json;
    }
}
