package plugins;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Date;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Records of all types, with schemas and without, to topics that begin with `prefix`. With `bad`, the record in the
 * middle has a text that is no text: half of a character.
 */
public final class TypedSource extends BaseSource {
    private static final Schema PRICE = Decimal.builder(2).optional().build();
    private static final Schema INNER = SchemaBuilder.struct().name("inner").optional()
            .field("a", SchemaBuilder.int8().defaultValue((byte) 5).build())
            .field("b", Schema.OPTIONAL_BYTES_SCHEMA)
            .build();
    private static final Schema ALL = SchemaBuilder.struct().name("all").version(3).doc("all types").parameter("p", "q")
            .field("i8", Schema.INT8_SCHEMA)
            .field("i16", Schema.INT16_SCHEMA)
            .field("i32", Schema.OPTIONAL_INT32_SCHEMA)
            .field("i64", Schema.INT64_SCHEMA)
            .field("f32", Schema.FLOAT32_SCHEMA)
            .field("f64", Schema.OPTIONAL_FLOAT64_SCHEMA)
            .field("flag", Schema.BOOLEAN_SCHEMA)
            .field("text", SchemaBuilder.string().optional().defaultValue("given").build())
            .field("raw", Schema.BYTES_SCHEMA)
            .field("price", PRICE)
            .field("day", Date.SCHEMA)
            .field("clock", Time.SCHEMA)
            .field("at", Timestamp.SCHEMA)
            .field("list", SchemaBuilder.array(Schema.OPTIONAL_STRING_SCHEMA).build())
            .field("map", SchemaBuilder.map(Schema.INT32_SCHEMA, INNER).build())
            .field("inner", INNER)
            .build();

    @Override
    public Class<? extends Task> taskClass() {
        return TypedTask.class;
    }

    public static final class TypedTask extends BaseTask {
        @Override
        public List<SourceRecord> poll() {
            return polls++ > 0 ? null : records();
        }

        private List<SourceRecord> records() {
            List<SourceRecord> records = new ArrayList<>();
            Map<String, Object> loose = new LinkedHashMap<>();
            loose.put("n", 7);
            loose.put("long", Long.MIN_VALUE);
            loose.put("float", 0.1f);
            loose.put("list", Arrays.asList(1.5, null, "x", true));
            records.add(record("typed", 1L, Schema.STRING_SCHEMA, "k1", ALL, all(1), null));
            records.add(record("typed", null, Schema.INT64_SCHEMA, 2L, ALL, all(2), 0));
            records.add(record("other", 3L, null, null, Schema.OPTIONAL_FLOAT64_SCHEMA, -0.0, null));
            records.add(record("typed", 4L, INNER, new Struct(INNER).put("a", (byte) 1), null, null, null));
            if (config.containsKey("bad")) {
                records.add(record("typed", 5L, null, null, Schema.STRING_SCHEMA, "half \ud800", null));
            }
            records.add(record("loose", 6L, null, "key", null, loose, null));
            records.add(record("typed", 7L, Schema.STRING_SCHEMA, "ключ", Schema.OPTIONAL_STRING_SCHEMA, null, null));
            return records;
        }

        private static Struct all(int number) {
            Struct inner = new Struct(INNER).put("b", ByteBuffer.wrap(new byte[] {0, -1}));
            Map<Integer, Object> map = new LinkedHashMap<>();
            map.put(1, inner);
            map.put(2, null);
            return new Struct(ALL)
                    .put("i8", (byte) -128)
                    .put("i16", (short) 300)
                    .put("i64", Long.MAX_VALUE - number)
                    .put("f32", 0.1f)
                    .put("f64", number == 1 ? null : 1e300)
                    .put("flag", true)
                    .put("text", number == 1 ? null : "жук 😀")
                    .put("raw", new byte[] {1, 2, 3})
                    .put("price", number == 1 ? new BigDecimal("-12345678901234567890.12") : null)
                    .put("day", new java.util.Date(-86_400_000L))
                    .put("clock", new java.util.Date(3_600_001L))
                    .put("at", new java.util.Date(1_700_000_000_123L))
                    .put("list", Arrays.asList("a", null))
                    .put("map", map)
                    .put("inner", number == 1 ? inner : null);
        }

        private SourceRecord record(
                String topic, Long time, Schema keySchema, Object key, Schema schema, Object value, Integer partition) {
            ConnectHeaders headers = new ConnectHeaders();
            headers.addInt("number", 3).addString("twice", "a").addString("twice", "b").add("none", null, null);
            headers.add("price", new BigDecimal("1.00"), Decimal.schema(2));
            return new SourceRecord(
                    Map.of("file", "x"), Map.of("position", 1L), config.get("prefix") + topic, partition, keySchema, key,
                    schema, value, time, headers);
        }
    }
}
