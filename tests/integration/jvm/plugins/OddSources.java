package plugins;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Headers;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceRecord;

/** Sources that work, with something unusual each. */
public final class OddSources {
    private OddSources() {}

    /** Asks for transactions: `marks` is record, batch or abort. */
    public static final class Marks extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return MarkTask.class;
        }

        @Override
        public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> values) {
            return ExactlyOnceSupport.SUPPORTED;
        }

        @Override
        public ConnectorTransactionBoundaries canDefineTransactionBoundaries(Map<String, String> values) {
            return ConnectorTransactionBoundaries.SUPPORTED;
        }

        public static final class MarkTask extends BaseTask {
            @Override
            protected List<SourceRecord> batch() {
                List<SourceRecord> batch = super.batch();
                switch (config.get("marks")) {
                    case "record" -> context.transactionContext().commitTransaction(batch.get(3));
                    case "batch" -> context.transactionContext().commitTransaction();
                    case "abort" -> context.transactionContext().abortTransaction(batch.get(6));
                    default -> throw new IllegalArgumentException(config.get("marks"));
                }
                return batch;
            }
        }
    }

    public static final class NullOffsets extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return NullTask.class;
        }

        public static final class NullTask extends BaseTask {
            @Override
            protected List<SourceRecord> batch() {
                Map<String, Object> offset = new LinkedHashMap<>();
                offset.put("position", null);
                return List.of(
                        new SourceRecord(null, null, "numbers", Schema.STRING_SCHEMA, "neither"),
                        new SourceRecord(Map.of("file", "a"), null, "numbers", Schema.STRING_SCHEMA, "no offset"),
                        new SourceRecord(Map.of("file", "b"), offset, "numbers", Schema.STRING_SCHEMA, "null in it"));
            }
        }
    }

    /** In its first run a record with an offset, in the next one a record that deletes it, and one of a later poll. */
    public static final class DeletesOffset extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return DeleteTask.class;
        }

        public static final class DeleteTask extends BaseTask {
            @Override
            public List<SourceRecord> poll() {
                boolean isFirstRun = context.offsetStorageReader().offset(Map.of("file", "a")) == null;
                if (isFirstRun) {
                    return polls++ > 0 ? null : List.of(record("a", Map.of("position", 1L), "kept"));
                }
                return switch (polls++) {
                    case 0 -> List.of(record("b", Map.of("position", 1L), "before"), record("a", null, "deletes"));
                    case 2 -> List.of(record("b", Map.of("position", 2L), "after"));
                    default -> null;
                };
            }

            private static SourceRecord record(String file, Map<String, ?> offset, String value) {
                return new SourceRecord(Map.of("file", file), offset, "numbers", Schema.STRING_SCHEMA, value);
            }
        }
    }

    /** Offsets of every kind that JSON holds; the task goes on where they say. */
    public static final class NestedOffsets extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return NestedTask.class;
        }

        public static final class NestedTask extends BaseTask {
            @Override
            protected List<SourceRecord> batch() {
                Map<String, Object> partition = new LinkedHashMap<>();
                partition.put("z", 1);
                partition.put("a", "é");
                Map<String, Object> stored = context.offsetStorageReader().offset(new HashMap<>(partition));
                Map<String, Object> offset = new LinkedHashMap<>();
                offset.put("long", Long.MAX_VALUE);
                offset.put("double", 0.1);
                offset.put("flag", true);
                offset.put("list", List.of(1, "two"));
                offset.put("map", Collections.singletonMap("deep", null));
                String seen = stored == null ? "nothing" : kinds(stored);
                return List.of(new SourceRecord(partition, offset, "numbers", Schema.STRING_SCHEMA, seen));
            }

            private static String kinds(Map<String, Object> stored) {
                StringBuilder text = new StringBuilder();
                stored.forEach((key, value) -> text.append(key).append('=').append(value).append(':')
                        .append(value.getClass().getSimpleName()).append(' '));
                return text.toString().trim();
            }
        }
    }

    /** Offsets that JSON has no form for: `kind` is bytes, nan or object. */
    public static final class BadOffsets extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return BadTask.class;
        }

        public static final class BadTask extends BaseTask {
            @Override
            protected List<SourceRecord> misbehave() {
                Object value = switch (config.get("kind")) {
                    case "bytes" -> new byte[] {1};
                    case "nan" -> Double.NaN;
                    default -> new Object();
                };
                return List.of(new SourceRecord(
                        Map.of("file", "x"), Map.of("position", value), "numbers", Schema.STRING_SCHEMA, "bad"));
            }
        }
    }

    /** Changes the map that it handed out as an offset, as plugins do that keep one. */
    public static final class ReusesOffset extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return ReuseTask.class;
        }

        public static final class ReuseTask extends BaseTask {
            private final Map<String, Object> offset = new HashMap<>();

            @Override
            public List<SourceRecord> poll() throws InterruptedException {
                offset.put("position", polls);
                return super.poll();
            }

            @Override
            protected List<SourceRecord> batch() {
                return List.of(new SourceRecord(Map.of("file", "x"), offset, "numbers", Schema.STRING_SCHEMA, "v"));
            }
        }
    }

    /** One poll with `rows` records of `bytes` bytes, then nothing. */
    public static final class BigPoll extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return BigTask.class;
        }

        public static final class BigTask extends BaseTask {
            @Override
            public List<SourceRecord> poll() {
                if (polls++ > 0) {
                    return null;
                }
                String text = "x".repeat(Integer.parseInt(config.get("bytes")));
                List<SourceRecord> batch = new ArrayList<>();
                for (long i = 0; i < Long.parseLong(config.get("rows")); i++) {
                    batch.add(new SourceRecord(
                            Map.of("file", "x"), Map.of("position", i), "numbers", Schema.STRING_SCHEMA, text));
                }
                return batch;
            }
        }
    }

    /** Nothing for `after_ms`, then two batches. */
    public static final class StartsLate extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return LateTask.class;
        }

        public static final class LateTask extends BaseTask {
            private final long start = System.nanoTime();

            @Override
            public List<SourceRecord> poll() throws InterruptedException {
                long waited = (System.nanoTime() - start) / 1_000_000;
                if (waited < Long.parseLong(config.get("after_ms"))) {
                    Thread.sleep(20);
                    return List.of();
                }
                return super.poll();
            }
        }
    }

    /** Null and empty keys, values and headers; a header twice; a partition and a time of its own. */
    public static final class Varied extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return VariedTask.class;
        }

        public static final class VariedTask extends BaseTask {
            @Override
            public List<SourceRecord> poll() {
                return polls++ > 0 ? null : Arrays.asList(
                        record(null, 7L, null, "value", new ConnectHeaders()
                                .addString("twice", "a").addString("twice", "b").add("none", null, null)),
                        record(3, null, "", "", new ConnectHeaders().addString("", "")),
                        record(null, -1L, "ключ", null, null));
            }

            private static SourceRecord record(Integer partition, Long time, String key, String value, Headers headers) {
                return new SourceRecord(
                        Map.of("file", "x"), Map.of("position", 1L), "varied", partition,
                        Schema.OPTIONAL_STRING_SCHEMA, key, Schema.OPTIONAL_STRING_SCHEMA, value, time, headers);
            }
        }
    }

    /** Prints which records were committed: with metadata, or null if they were dropped. */
    public static final class Commits extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return CommitTask.class;
        }

        public static final class CommitTask extends BaseTask {
            private final List<String> committed = new ArrayList<>();

            @Override
            public void commitRecord(SourceRecord record, RecordMetadata metadata) {
                committed.add(record.value() + (metadata == null ? " dropped" : ""));
            }

            @Override
            public void commit() {
                System.out.println("committed " + committed.size() + " last " + committed.get(committed.size() - 1));
                throw new IllegalStateException("commit bug");
            }
        }
    }

    /** `rows` records with strings of `bytes` bytes, as fast as it can. */
    public static final class Generates extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return GenerateTask.class;
        }

        public static final class GenerateTask extends BaseTask {
            private long left;
            private String text;

            @Override
            public void start(Map<String, String> values) {
                left = Long.parseLong(values.get("rows"));
                text = "x".repeat(Integer.parseInt(values.get("bytes")));
            }

            @Override
            public List<SourceRecord> poll() {
                List<SourceRecord> batch = new ArrayList<>();
                Map<String, ?> partition = Map.of("file", "x");
                for (int i = 0; i < 2000 && left > 0; i++, left--) {
                    batch.add(new SourceRecord(
                            partition, Map.of("left", left), "numbers", Schema.STRING_SCHEMA, text));
                }
                return batch;
            }
        }
    }
}
