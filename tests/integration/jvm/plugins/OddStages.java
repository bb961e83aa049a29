package plugins;

import java.math.BigDecimal;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.transforms.Transformation;

/** What a transformation may do that others do not. */
public final class OddStages {
    private OddStages() {}

    /** It does what the value says, in two words: `keys zero`, for example. */
    public static class Odd<R extends ConnectRecord<R>> implements Transformation<R> {
        private String seal;

        @Override
        public void configure(Map<String, ?> config) {
            seal = String.valueOf(config.get("seal"));
        }

        @Override
        public ConfigDef config() {
            return new ConfigDef().define("seal", ConfigDef.Type.PASSWORD, "", ConfigDef.Importance.LOW, "A secret.");
        }

        @Override
        public R apply(R record) {
            if (!(record.value() instanceof String)) {
                return record;
            }
            String[] words = ((String) record.value()).split(" ", 2);
            switch (words[0]) {
                case "throw":
                    throw new DataException("no access with " + seal, new IllegalStateException("cause: " + seal));
                case "talk":
                    throw new DataException("a".repeat(Integer.parseInt(words[1])));
                case "much":
                    return with(record, null, "m".repeat(Integer.parseInt(words[1])));
                case "schema":
                    Schema schema = SchemaBuilder.struct().doc(words[1]).field("f", Schema.STRING_SCHEMA).build();
                    return with(record, schema, new Struct(schema).put("f", words[1]));
                case "keys":
                    return with(record, null, Map.of("map", keys(words[1])));
                case "typed":
                    Schema map = SchemaBuilder.map(Schema.FLOAT64_SCHEMA, Schema.STRING_SCHEMA).build();
                    return with(record, map, keys(words[1]));
                case "header":
                    ConnectHeaders headers = new ConnectHeaders();
                    headers.addString("half \ud800", "of a character");
                    return record.newRecord(
                            record.topic(), record.kafkaPartition(), null, null, null, null, record.timestamp(), headers);
                default:
                    return record;
            }
        }

        private static Map<Object, Object> keys(String what) {
            Map<Object, Object> keys = new LinkedHashMap<>();
            switch (what) {
                case "integers":
                    keys.put(1, "int");
                    keys.put(1L, "long");
                    break;
                case "boolean":
                    keys.put(true, "boolean");
                    keys.put(1.0, "double");
                    break;
                case "zero":
                    keys.put(0.0, "plus");
                    keys.put(-0.0, "minus");
                    break;
                case "scale":
                    keys.put(new BigDecimal("1.0"), "one");
                    keys.put(new BigDecimal("1.00"), "two");
                    break;
                default:
                    keys.put(1.5, "double");
                    keys.put(-2.0, "other");
            }
            if (what.equals("different")) {
                keys.put(2, "int");
                keys.put("2", "text");
                keys.put(false, "boolean");
                keys.put(new Date(2), "date");
                keys.put(new BigDecimal("2.5"), "decimal");
                keys.put(null, "null");
            }
            return keys;
        }

        private R with(R record, Schema schema, Object value) {
            return record.newRecord(
                    record.topic(), record.kafkaPartition(), record.keySchema(), record.key(), schema, value,
                    record.timestamp(), record.headers());
        }

        @Override
        public void close() {}
    }
}
