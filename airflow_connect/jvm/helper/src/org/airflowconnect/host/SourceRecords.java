package org.airflowconnect.host;

import java.lang.reflect.Method;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.runtime.WorkerTransactionContext;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.util.ConnectUtils;

/** How the records of a source task become messages, as a worker makes them. */
final class SourceRecords {
    private static final int NOT_CHOSEN = -1;

    private final SourceTask task;
    private final Chain<SourceRecord> chain;
    private final WorkerTransactionContext transaction;
    private final boolean areCommitted;

    /** @param transaction null unless the plugin defines the boundaries of transactions */
    SourceRecords(SourceTask task, Chain<SourceRecord> chain, WorkerTransactionContext transaction) {
        this.task = task;
        this.chain = chain;
        this.transaction = transaction;
        areCommitted = overridesCommitRecord(task.getClass());
    }

    WorkerTransactionContext transaction() {
        return transaction;
    }

    /** Whether the task wants to know about each record: otherwise none is kept. */
    boolean areCommitted() {
        return areCommitted;
    }

    /** The message, or null: a transformation drops the record. */
    Message convert(SourceRecord record) throws RecordFailure, PluginFailure {
        try {
            SourceRecord changed = chain.transform(record);
            if (changed == null) {
                return null;
            }
            if (changed.topic() == null) {
                throw new DataException("The record has no topic.");
            }
            Integer partition = changed.kafkaPartition();
            if (partition != null && partition < 0) {
                throw new DataException("The record names the partition " + partition + ".");
            }
            Long timestamp = ConnectUtils.checkAndConvertTimestamp(changed.timestamp());
            return chain.toMessage(
                    changed, partition == null ? NOT_CHOSEN : partition, timestamp == null ? NOT_CHOSEN : timestamp);
        } catch (RuntimeException | Error error) { // No failure that errors.tolerance covers.
            throw new PluginFailure("poll", task.getClass().getName(), error);
        }
    }

    /** Which record, for messages. */
    static String where(SourceRecord record) {
        return "topic " + record.topic() + ", source partition " + record.sourcePartition() + ", offset "
                + record.sourceOffset();
    }

    private static boolean overridesCommitRecord(Class<?> task) {
        try {
            Method method = task.getMethod("commitRecord", SourceRecord.class, RecordMetadata.class);
            return method.getDeclaringClass() != SourceTask.class;
        } catch (NoSuchMethodException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
