package plugins;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** A sink with one task. */
public abstract class BaseSink extends SinkConnector {
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
        return new ConfigDef()
                .define("mode", ConfigDef.Type.STRING, "ok", ConfigDef.ValidString.in("ok", "other"),
                        ConfigDef.Importance.HIGH, "How it works.", "General", 1, ConfigDef.Width.SHORT, "Mode")
                .define("secret", ConfigDef.Type.PASSWORD, null, ConfigDef.Importance.LOW, "A secret.");
    }

    @Override
    public String version() {
        return "2.0";
    }

    /** Remembers its configuration and takes everything. */
    public abstract static class BaseTask extends SinkTask {
        protected Map<String, String> config;

        @Override
        public void start(Map<String, String> values) {
            config = values;
        }

        @Override
        public void put(Collection<SinkRecord> records) {}

        @Override
        public void stop() {}

        @Override
        public String version() {
            return "2.0";
        }
    }
}
