package plugins;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceRecord;

/** Plugins that do next to nothing, so that a benchmark measures who runs them. */
public final class Measured {
    private Measured() {}

    /**
     * `rows` texts of `bytes` bytes that begin with their number, in polls of `batch` records, for the topic `topic`. Each
     * names the partition 0 if `placed` is true.
     */
    public static final class Numbers extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return NumbersTask.class;
        }

        @Override
        public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> values) {
            return ExactlyOnceSupport.SUPPORTED;
        }

        public static final class NumbersTask extends BaseTask {
            private static final long FIRST = 1_000_000_000L;
            private static final Map<String, Object> PARTITION = Map.of("file", "x");
            private String topic;
            private String filling;
            private Integer partition;
            private int batch;
            private long next;
            private long rows;

            @Override
            public void start(Map<String, String> values) {
                topic = values.get("topic");
                partition = Boolean.parseBoolean(values.get("placed")) ? 0 : null;
                rows = Long.parseLong(values.get("rows"));
                batch = Integer.parseInt(values.get("batch"));
                filling = "x".repeat(Integer.parseInt(values.get("bytes")) - Long.toString(FIRST).length());
                Map<String, Object> offset = context.offsetStorageReader().offset(PARTITION);
                next = offset == null ? 0 : ((Number) offset.get("next")).longValue();
            }

            @Override
            public List<SourceRecord> poll() throws InterruptedException {
                if (next == rows) {
                    Thread.sleep(50);
                    return null;
                }
                List<SourceRecord> records = new ArrayList<>(batch);
                while (records.size() < batch && next < rows) {
                    String value = (FIRST + next) + filling;
                    next++;
                    records.add(new SourceRecord(PARTITION, Map.of("next", next), topic, partition, null, null,
                            Schema.STRING_SCHEMA, value));
                }
                return records;
            }
        }
    }

    /** Counts its records; each of its tasks writes how many it has got into a file of its own in `folder`. */
    public static final class Counts extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return CountsTask.class;
        }

        public static final class CountsTask extends BaseTask {
            private long count;

            @Override
            public void put(Collection<SinkRecord> records) {
                count += records.size();
            }

            @Override
            public void flush(Map<TopicPartition, OffsetAndMetadata> offsets) {
                String name = Integer.toHexString(System.identityHashCode(this)) + "-" + ProcessHandle.current().pid();
                try {
                    Files.writeString(Path.of(config.get("folder"), name), Long.toString(count));
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            }
        }
    }
}
