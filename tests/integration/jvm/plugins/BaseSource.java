package plugins;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** A source with one task; each class in this package behaves in one way that real plugins do. */
public abstract class BaseSource extends SourceConnector {
    protected Map<String, String> config;

    @Override
    public void start(Map<String, String> values) {
        config = values;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return List.of(config);
    }

    @Override
    public void stop() {}

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public String version() {
        return "1.0";
    }

    /** Two polls with ten records each, then what `misbehave` does. */
    public abstract static class BaseTask extends SourceTask {
        protected static final int GOOD_POLLS = 2;
        protected static final int BATCH = 10;
        protected Map<String, String> config;
        protected int polls;

        @Override
        public void start(Map<String, String> values) {
            config = values;
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            return polls++ < GOOD_POLLS ? batch() : misbehave();
        }

        protected List<SourceRecord> misbehave() throws InterruptedException {
            return null;
        }

        protected List<SourceRecord> batch() {
            List<SourceRecord> batch = new ArrayList<>();
            for (int i = 0; i < BATCH; i++) {
                batch.add(record((polls - 1) * BATCH + i));
            }
            return batch;
        }

        protected static SourceRecord record(long number) {
            return new SourceRecord(
                    Map.of("file", "x"), Map.of("position", number), "numbers", Schema.STRING_SCHEMA, "v" + number);
        }

        @Override
        public void stop() {}

        @Override
        public String version() {
            return "1.0";
        }
    }
}
