package acme;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.Config;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigDef.Width;
import org.apache.kafka.common.config.ConfigValue;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** A sink for tests of pages and validation. Its jar has no service file. Its secret has a name like any other key. */
public class LedgerSinkConnector extends SinkConnector {
    private static final ConfigDef.Recommender MODES = new ConfigDef.Recommender() {
        @Override
        public List<Object> validValues(String name, Map<String, Object> parsed) {
            return List.of("append", "amend");
        }

        @Override
        public boolean visible(String name, Map<String, Object> parsed) {
            return true;
        }
    };

    private static final ConfigDef KEYS = new ConfigDef()
            .define("ledger.url", Type.STRING, ConfigDef.NO_DEFAULT_VALUE, Importance.HIGH, "Where the ledger is.",
                    "Ledger", 1, Width.LONG, "Ledger", List.of("ledger.mode"))
            .define("ledger.seal", Type.PASSWORD, "sealed", Importance.HIGH, "What entries are sealed with.",
                    "Ledger", 2, Width.SHORT, "Seal")
            .define("ledger.mode", Type.STRING, "append", Importance.LOW, "What happens to an entry that is there.",
                    "Ledger", 3, Width.SHORT, "Mode", MODES)
            .define("ledger.pages", Type.INT, 10, ConfigDef.Range.atLeast(1), Importance.LOW, "Pages of an entry.")
            .define("errors.tolerance", Type.STRING, "none", Importance.MEDIUM, "As of every connector, once more.");

    @Override
    public Config validate(Map<String, String> config) {
        Config found = super.validate(config);
        for (ConfigValue value : found.configValues()) {
            if (value.name().equals("ledger.url") && String.valueOf(value.value()).startsWith("refused:")) {
                value.addErrorMessage("The ledger at " + value.value() + " refuses " + config.get("name") + ".");
            }
        }
        return found;
    }

    @Override
    public ConfigDef config() {
        return KEYS;
    }

    @Override
    public String version() {
        return "7.1";
    }

    @Override
    public void start(Map<String, String> config) {}

    @Override
    public void stop() {}

    @Override
    public Class<? extends Task> taskClass() {
        return LedgerTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return List.of(Map.of());
    }

    /** Takes records and forgets them. */
    public static class LedgerTask extends SinkTask {
        @Override
        public String version() {
            return "7.1";
        }

        @Override
        public void start(Map<String, String> config) {}

        @Override
        public void put(Collection<SinkRecord> records) {}

        @Override
        public void stop() {}
    }
}
