package plugins;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.sink.SinkRecord;

/** Sinks that confirm what they have written, each in its own way. */
public final class OddSinks {
    private OddSinks() {}

    /** It appends values to `file`, and preCommit returns the offset after the last record that it has got. */
    public static class OwnPositions extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return PositionTask.class;
        }

        public static class PositionTask extends BaseTask {
            protected final Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
            protected final List<SinkRecord> buffer = new ArrayList<>();
            private int asked;

            private boolean does(String what) {
                return what.equals(config.get("how"));
            }

            @Override
            public void open(Collection<TopicPartition> partitions) {
                if (does("pauses")) {
                    context.pause(partitions.toArray(new TopicPartition[0]));
                }
                if (does("skips")) {
                    partitions.forEach(each -> context.offset(each, 5));
                }
            }

            @Override
            public void put(Collection<SinkRecord> records) {
                if (does("retries empty") && records.isEmpty() && asked++ < 2) {
                    throw new RetriableException("the target is not there yet");
                }
                if (does("rewinds once") && !records.isEmpty() && asked++ == 0) {
                    SinkRecord first = records.iterator().next();
                    context.offset(new TopicPartition(first.topic(), first.kafkaPartition()), first.kafkaOffset());
                    return;
                }
                for (SinkRecord record : records) {
                    if (does("reports twice") && "3".equals(record.value())) {
                        context.errantRecordReporter().report(record, new IllegalStateException("first"));
                        context.errantRecordReporter().report(record, new IllegalStateException("second"));
                    } else if (does("reports in threads") && Integer.parseInt((String) record.value()) % 3 == 0) {
                        new Thread(() -> context.errantRecordReporter()
                                .report(record, new IllegalStateException("in a thread"))).start();
                    } else {
                        write((String) record.value());
                    }
                    positions.put(
                            new TopicPartition(record.originalTopic(), record.originalKafkaPartition()),
                            new OffsetAndMetadata(record.originalKafkaOffset() + 1));
                }
            }

            @Override
            public Map<TopicPartition, OffsetAndMetadata> preCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
                if (does("throws once") && asked++ == 0) {
                    throw new RetriableException("flush later");
                }
                if (does("others")) {
                    Map<TopicPartition, OffsetAndMetadata> more = new HashMap<>(positions);
                    more.put(new TopicPartition("elsewhere", 7), new OffsetAndMetadata(3));
                    offsets.keySet().forEach(each -> more.put(each, new OffsetAndMetadata(1_000_000)));
                    return more;
                }
                if (does("late") && asked++ < 3) {
                    return new HashMap<>();
                }
                return does("confirms all") || does("rewinds once") ? offsets : new HashMap<>(positions);
            }

            private void write(String line) {
                try {
                    Files.writeString(Path.of(config.get("file")), line + "\n",
                            StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            }
        }
    }
}
