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
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkRecord;

/**
 * A file in `folder` for each key, with its last value. Up to `buffer` records are kept until there are more, or the
 * sink must write. It sleeps for `pause` ms after each hundred of them.
 */
public final class Upserts extends BaseSink {
    @Override
    public Class<? extends Task> taskClass() {
        return UpsertTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return java.util.Collections.nCopies(most, config);
    }

    /** Its task. */
    public static final class UpsertTask extends BaseTask {
        private static final int PAUSE_EVERY = 100;
        private final List<SinkRecord> kept = new ArrayList<>();
        private long written;

        @Override
        public void put(Collection<SinkRecord> records) {
            kept.addAll(records);
            if (kept.size() > Integer.parseInt(config.get("buffer"))) {
                write();
            }
        }

        @Override
        public void flush(Map<TopicPartition, OffsetAndMetadata> offsets) {
            write();
        }

        private void write() {
            try {
                for (SinkRecord record : kept) {
                    Path file = Path.of(config.get("folder"), (String) record.key());
                    if (record.value() == null) {
                        Files.deleteIfExists(file);
                    } else {
                        Files.writeString(file, (String) record.value());
                    }
                    if (++written % PAUSE_EVERY == 0) {
                        Thread.sleep(Long.parseLong(config.get("pause")));
                    }
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            } catch (InterruptedException stopping) {
                throw new ConnectException(stopping);
            }
            kept.clear();
        }
    }
}
