package plugins;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Date;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Parts of chains that do with a record what its value says: `fail-a` is for the one whose `name` is `a`. */
public final class ChainStages {
    private ChainStages() {}

    private static final ConfigDef NAMED = new ConfigDef()
            .define("name", ConfigDef.Type.STRING, "a", ConfigDef.Importance.HIGH, "Which one it is.")
            .define("times", ConfigDef.Type.INT, 1, ConfigDef.Range.atLeast(0), ConfigDef.Importance.LOW, "Busy calls.")
            .define("mark", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "A file of the first JVM that halts.")
            .define("seal", ConfigDef.Type.PASSWORD, "", ConfigDef.Importance.LOW, "A secret, printed.");

    /** The state of one of them. */
    private static final class Script {
        private final String name;
        private final int times;
        private final String mark;
        private int busy;
        private int calls;

        Script(Map<String, ?> config) {
            Map<String, Object> parsed = NAMED.parse(config);
            name = (String) parsed.get("name");
            times = (Integer) parsed.get("times");
            mark = (String) parsed.get("mark");
            System.out.println("configured " + name + " " + config.get("seal"));
        }

        /** Fails if the text says so; returns how often it was called. */
        int call(String text) {
            calls++;
            if (text.contains("fail-" + name)) {
                throw new DataException("call " + calls + " of " + name);
            }
            if (text.contains("busy-" + name) && busy++ < times) {
                throw new RetriableException("busy " + busy);
            }
            busy = 0;
            if (text.contains("error-" + name)) {
                throw new NoClassDefFoundError("missing/In" + name);
            }
            if (text.contains("halt-" + name) && isFirst()) {
                Runtime.getRuntime().halt(7);
            }
            if (text.contains("slow-" + name)) {
                pause(50);
            }
            if (text.contains("hang-" + name)) {
                pause(600_000);
            }
            return calls;
        }

        /** Whether no JVM has been here: it leaves a file. */
        private boolean isFirst() {
            try {
                Files.createFile(Path.of(mark));
                return true;
            } catch (IOException error) {
                return false;
            }
        }

        private static void pause(long milliseconds) {
            try {
                Thread.sleep(milliseconds);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** It adds a header with the number of its call, and drops what says `drop-a`. */
    public static class Counts<R extends ConnectRecord<R>> implements Transformation<R> {
        private Script script;

        @Override
        public void configure(Map<String, ?> config) {
            script = new Script(config);
        }

        @Override
        public ConfigDef config() {
            return NAMED;
        }

        @Override
        public R apply(R record) {
            String text = String.valueOf(record.value());
            int calls = script.call(text);
            if (text.contains("drop-" + script.name)) {
                return null;
            }
            ConnectHeaders headers = new ConnectHeaders(record.headers());
            headers.addInt("call-" + script.name, calls);
            return record.newRecord(
                    record.topic(), record.kafkaPartition(), record.keySchema(), record.key(), record.valueSchema(),
                    record.value(), record.timestamp(), headers);
        }

        @Override
        public void close() {
            if (script != null && script.name.startsWith("noisy")) {
                throw new IllegalStateException("it does not close");
            }
        }
    }

    /** It makes a date before the year 1 of the text `old`. */
    public static class MakesOldDates<R extends ConnectRecord<R>> implements Transformation<R> {
        @Override
        public void configure(Map<String, ?> config) {}

        @Override
        public ConfigDef config() {
            return new ConfigDef();
        }

        @Override
        public R apply(R record) {
            boolean isOld = "old".equals(record.value());
            return record.newRecord(
                    record.topic(), record.kafkaPartition(), record.keySchema(), record.key(),
                    isOld ? null : record.valueSchema(), isOld ? new Date(Long.MIN_VALUE) : record.value(),
                    record.timestamp(), record.headers());
        }

        @Override
        public void close() {}
    }

    /** It is true for what says `match-a`, and for each fifth call. */
    public static class Matches<R extends ConnectRecord<R>> implements Predicate<R> {
        private Script script;

        @Override
        public void configure(Map<String, ?> config) {
            script = new Script(config);
        }

        @Override
        public ConfigDef config() {
            return NAMED;
        }

        @Override
        public boolean test(R record) {
            String text = String.valueOf(record.value());
            return script.call(text) % 5 == 0 || text.contains("match-" + script.name);
        }

        @Override
        public void close() {}
    }

    /** Text, backwards, with the number of the call in front; null stays null. */
    public static class Reverses implements Converter, HeaderConverter {
        private Script script;

        @Override
        public void configure(Map<String, ?> config, boolean isKey) {
            script = new Script(config);
        }

        @Override
        public void configure(Map<String, ?> config) {
            script = new Script(config);
        }

        @Override
        public ConfigDef config() {
            return NAMED;
        }

        @Override
        public String version() {
            return "7";
        }

        @Override
        public SchemaAndValue toConnectData(String topic, byte[] data) {
            if (data == null) {
                return SchemaAndValue.NULL;
            }
            String text = new String(data, StandardCharsets.UTF_8);
            return new SchemaAndValue(Schema.OPTIONAL_STRING_SCHEMA, script.call(text) + " " + reversed(text));
        }

        @Override
        public byte[] fromConnectData(String topic, Schema schema, Object value) {
            if (value == null) {
                return null;
            }
            return (script.call(value.toString()) + " " + reversed(value.toString())).getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public SchemaAndValue toConnectHeader(String topic, String name, byte[] data) {
            return toConnectData(topic, data);
        }

        @Override
        public byte[] fromConnectHeader(String topic, String name, Schema schema, Object value) {
            return fromConnectData(topic, schema, value);
        }

        private static String reversed(String text) {
            return new StringBuilder(text).reverse().toString();
        }

        @Override
        public void close() {}
    }
}
