package plugins;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.Config;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.SinkRecord;

/** Sinks that work and sinks that fail. */
public final class Sinks {
    private Sinks() {}

    /** Looks for its system when it validates a configuration, and does not find it. */
    public static final class Refuses extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return Records.RecordTask.class;
        }

        @Override
        public Config validate(Map<String, String> values) {
            Config found = super.validate(values);
            found.configValues().get(0).addErrorMessage("Connection refused");
            return found;
        }
    }

    /** Writes one line for each record to `file`, and one for each call. */
    public static final class Records extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return RecordTask.class;
        }

        @Override
        public boolean alterOffsets(Map<String, String> values, Map<TopicPartition, Long> offsets) {
            return offsets.containsValue(null);
        }

        public static final class RecordTask extends BaseTask {
            @Override
            public void open(Collection<TopicPartition> partitions) {
                write("open " + partitions);
            }

            @Override
            public void put(Collection<SinkRecord> records) {
                write("put " + records.size());
                for (SinkRecord record : records) {
                    StringBuilder line = new StringBuilder();
                    line.append(record.originalTopic()).append('-').append(record.kafkaPartition()).append('@')
                            .append(record.kafkaOffset()).append(' ').append(record.timestamp()).append(' ')
                            .append(record.timestampType()).append(' ').append(record.key()).append('=')
                            .append(record.value());
                    for (Header header : record.headers()) {
                        line.append(' ').append(header.key()).append(':').append(header.value());
                    }
                    write(line.append(' ').append(record.getClass().getSimpleName()).toString());
                }
            }

            @Override
            public void flush(Map<TopicPartition, OffsetAndMetadata> offsets) {
                write("flush " + offsets.size());
            }

            @Override
            public void close(Collection<TopicPartition> partitions) {
                write("close " + partitions);
            }

            @Override
            public void stop() {
                write("stop");
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

    /** Throws away: for measuring. */
    public static final class Discards extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return DiscardTask.class;
        }

        public static final class DiscardTask extends BaseTask {}
    }

    public static final class ThrowsInStart extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return StartTask.class;
        }

        public static final class StartTask extends BaseTask {
            @Override
            public void start(Map<String, String> values) {
                throw new ConnectException("no start");
            }
        }
    }

    public static final class ThrowsInPut extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return PutTask.class;
        }

        public static final class PutTask extends BaseTask {
            @Override
            public void put(Collection<SinkRecord> records) {
                throw new ConnectException("no put");
            }
        }
    }

    public static final class ErrorInPut extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return PutTask.class;
        }

        public static final class PutTask extends BaseTask {
            @Override
            public void put(Collection<SinkRecord> records) {
                throw new NoClassDefFoundError("com/example/Missing");
            }
        }
    }

    public static final class ExitsInPut extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return PutTask.class;
        }

        public static final class PutTask extends BaseTask {
            @Override
            public void put(Collection<SinkRecord> records) {
                System.exit(5);
            }
        }
    }

    public static final class HangsInPut extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return HangTask.class;
        }

        public static final class HangTask extends BaseTask {
            @Override
            public void put(Collection<SinkRecord> records) {
                waitForEver();
            }

            private static void waitForEver() {
                while (true) {
                    try {
                        new CountDownLatch(1).await();
                    } catch (InterruptedException ignored) {
                        // As plugins do that catch everything.
                    }
                }
            }
        }
    }

    public static final class ThrowsInStop extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return StopTask.class;
        }

        public static final class StopTask extends BaseTask {
            @Override
            public void close(Collection<TopicPartition> partitions) {
                throw new IllegalStateException("close bug");
            }

            @Override
            public void stop() {
                throw new IllegalStateException("stop bug");
            }
        }
    }

    /** Refuses the third portion twice, with a pause of its own the first time. */
    public static final class Retries extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return RetryTask.class;
        }

        public static final class RetryTask extends BaseTask {
            private int calls;

            @Override
            public void put(Collection<SinkRecord> records) {
                calls++;
                if (calls == 3) {
                    context.timeout(250);
                }
                if (calls == 3 || calls == 4) {
                    throw new RetriableException("busy " + calls);
                }
                System.out.println("put " + records.size());
            }
        }
    }

    /** Reports one record in put, another from its own thread later, a third in stop. */
    public static final class ReportsErrors extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return ReportTask.class;
        }

        public static final class ReportTask extends BaseTask {
            private final List<SinkRecord> kept = new ArrayList<>();

            @Override
            public void put(Collection<SinkRecord> records) {
                kept.addAll(records);
                report(kept.get(0), "at once");
            }

            @Override
            public void flush(Map<TopicPartition, OffsetAndMetadata> offsets) {
                Thread late = new Thread(() -> report(kept.get(1), "later"));
                late.start();
                try {
                    late.join();
                } catch (InterruptedException error) {
                    throw new ConnectException(error);
                }
            }

            @Override
            public void stop() {
                report(kept.get(2), "at the end");
            }

            private void report(SinkRecord record, String when) {
                context.errantRecordReporter().report(record, new IllegalArgumentException("bad record, " + when));
            }
        }
    }

    /** Begins at an offset of its own. */
    public static final class AsksInOpen extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return AskTask.class;
        }

        public static final class AskTask extends BaseTask {
            @Override
            public void open(Collection<TopicPartition> partitions) {
                partitions.forEach(partition -> context.offset(partition, 17));
                context.pause(partitions.toArray(new TopicPartition[0]));
            }
        }
    }

    /** Leaves every second record out, and reports it if there is somebody to report to. */
    public static final class LeavesOut extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return LeaveOutTask.class;
        }

        public static final class LeaveOutTask extends BaseTask {
            @Override
            public void put(Collection<SinkRecord> records) {
                for (SinkRecord record : records) {
                    if (record.kafkaOffset() % 2 == 1 && context.errantRecordReporter() != null) {
                        context.errantRecordReporter().report(record, new IllegalArgumentException("odd"));
                    }
                }
            }
        }
    }

    /** Uses everything that a context has. */
    public static final class Asks extends BaseSink {
        @Override
        public Class<? extends Task> taskClass() {
            return AskTask.class;
        }

        public static final class AskTask extends BaseTask {
            @Override
            public void put(Collection<SinkRecord> records) {
                TopicPartition first = context.assignment().iterator().next();
                if (records.isEmpty()) {
                    context.resume(first);
                    return;
                }
                context.offset(first, 4);
                context.pause(first);
                context.requestCommit();
                var name = context.pluginMetrics().metricName("n", "d", new java.util.LinkedHashMap<>());
                context.pluginMetrics().addSensor("s").add(name, new org.apache.kafka.common.metrics.stats.Value());
            }

            /** Keeps its own offsets. */
            @Override
            public Map<TopicPartition, OffsetAndMetadata> preCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
                return "null".equals(config.get("mode2")) ? null : Map.of();
            }
        }
    }
}
