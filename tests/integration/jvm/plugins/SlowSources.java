package plugins;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.SourceRecord;

/** Sources that look as if they had nothing. */
public final class SlowSources {
    private SlowSources() {}

    /** Two polls that find nothing at once, one that takes `slow` ms and returns ten records, and nothing after it. */
    public static final class OneSlowTable extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return SlowTask.class;
        }

        public static final class SlowTask extends BaseTask {
            @Override
            public List<SourceRecord> poll() throws InterruptedException {
                polls++;
                if (polls == 3) {
                    Thread.sleep(Long.parseLong(config.get("slow")));
                    polls = 1;
                    List<SourceRecord> found = batch();
                    polls = 3;
                    return found;
                }
                return polls % 2 == 0 ? null : List.of();
            }
        }
    }

    /** It knows its tables only after `late` ms, and asks to be asked again then. */
    public static final class LateTables extends BaseSource {
        private volatile boolean isKnown;

        @Override
        public void start(Map<String, String> values) {
            super.start(values);
            Thread search = new Thread(() -> {
                try {
                    Thread.sleep(Long.parseLong(values.get("late")));
                } catch (InterruptedException stopping) {
                    return;
                }
                isKnown = true;
                context.requestTaskReconfiguration();
            });
            search.setDaemon(true);
            search.start();
        }

        @Override
        public Class<? extends Task> taskClass() {
            return LateTask.class;
        }

        @Override
        public List<Map<String, String>> taskConfigs(int most) {
            return isKnown || "first".equals(config.get("known")) ? List.of(config) : List.of();
        }

        public static final class LateTask extends BaseTask {}
    }

    /** Records of one key; every second one names its partition, the same that its key has. */
    public static final class SomePartitions extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return SomeTask.class;
        }

        public static final class SomeTask extends BaseTask {
            @Override
            protected List<SourceRecord> batch() {
                List<SourceRecord> records = new ArrayList<>();
                for (long i = 0; i < BATCH; i++) {
                    long number = (polls - 1) * BATCH + i;
                    records.add(new SourceRecord(
                            Map.of("file", "x"), Map.of("position", number), "numbers", number % 2 == 0 ? null : 0,
                            Schema.STRING_SCHEMA, "k", Schema.STRING_SCHEMA, "v" + number));
                }
                return records;
            }
        }
    }
}
