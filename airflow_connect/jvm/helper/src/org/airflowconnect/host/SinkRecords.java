package org.airflowconnect.host;

import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.runtime.InternalSinkRecord;
import org.apache.kafka.connect.runtime.errors.ProcessingContext;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.util.ConnectUtils;

/** How messages become the records of a sink task, as a worker makes them. Some plugins look for its own class. */
final class SinkRecords {
    private static final int UNKNOWN = -1;

    private final Chain<SinkRecord> chain;

    SinkRecords(Chain<SinkRecord> chain) {
        this.chain = chain;
    }

    /** The record, or null: a transformation drops it. */
    SinkRecord convert(FrameReader frame, int row) throws RecordFailure {
        Message message = frame.message(row);
        TimestampType timestampType = frame.timestampType();
        SchemaAndValue key = chain.key(message);
        SchemaAndValue value = chain.value(message);
        ConnectHeaders headers = chain.headers(message);
        Long timestamp = ConnectUtils.checkAndConvertTimestamp(message.timestamp());
        SinkRecord made = new SinkRecord(
                frame.currentTopic(row), frame.currentPartition(row), key.schema(), key.value(), value.schema(),
                value.value(), message.offset(), timestamp, timestampType, headers,
                message.topic(), message.partition(), message.offset());
        SinkRecord changed = chain.transform(made);
        return changed == null
                ? null
                : new InternalSinkRecord(new ProcessingContext<>(consumed(message, timestampType)), changed);
    }

    private static ConsumerRecord<byte[], byte[]> consumed(Message message, TimestampType timestampType) {
        return new ConsumerRecord<>(
                message.topic(), message.partition(), message.offset(), message.timestamp(), timestampType,
                message.key() == null ? UNKNOWN : message.key().length,
                message.value() == null ? UNKNOWN : message.value().length,
                message.key(), message.value(), message.headers(), Optional.empty());
    }
}
