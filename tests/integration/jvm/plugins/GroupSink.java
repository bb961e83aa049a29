package plugins;

import java.lang.reflect.Field;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkRecord;

/** Takes the consumer of its worker, as Apache's Iceberg sink does, and commits what it has got at each put. */
public final class GroupSink extends BaseSink {
    @Override
    public Class<? extends Task> taskClass() {
        return Writes.class;
    }

    /** Prints each record that it gets. */
    public static final class Writes extends BaseTask {
        private final Map<TopicPartition, OffsetAndMetadata> got = new HashMap<>();

        @Override
        public void put(Collection<SinkRecord> records) {
            for (SinkRecord record : records) {
                System.out.println("got " + record.kafkaPartition() + "@" + record.kafkaOffset());
                got.put(new TopicPartition(record.originalTopic(), record.originalKafkaPartition()),
                        new OffsetAndMetadata(record.originalKafkaOffset() + 1));
            }
            if (!got.isEmpty()) {
                consumer().commitSync(got);
            }
        }

        @Override
        public Map<TopicPartition, OffsetAndMetadata> preCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
            return Map.of();
        }

        @SuppressWarnings("unchecked")
        private Consumer<byte[], byte[]> consumer() {
            try {
                Class<?> worker = Class.forName("org.apache.kafka.connect.runtime.WorkerSinkTaskContext");
                Field field = worker.getDeclaredField("consumer");
                field.setAccessible(true);
                return (Consumer<byte[], byte[]>) field.get(context);
            } catch (ReflectiveOperationException missing) {
                throw new ConnectException("This needs a worker.", missing);
            }
        }
    }
}
