package io.debezium.like;

import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Map;
import javax.management.ObjectName;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Reads in a thread of its own as Debezium does, and tells by the same MBeans how far it is: a step each `step_ms`. */
public final class LikeDebezium extends SourceConnector {
    private Map<String, String> config;

    @Override
    public void start(Map<String, String> values) {
        config = values;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return ReadingTask.class;
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

    /** The attributes of Debezium's snapshot metrics that matter. */
    public interface SnapshotMBean {
        boolean isSnapshotRunning();

        boolean isSnapshotCompleted();

        int getQueueTotalCapacity();

        int getQueueRemainingCapacity();
    }

    /** The attributes of its streaming metrics that matter. */
    public interface StreamingMBean {
        boolean isConnected();

        long getBinlogPosition();

        long getMilliSecondsBehindSource();

        int getQueueTotalCapacity();

        int getQueueRemainingCapacity();
    }

    /** Both kinds of metrics. */
    public static final class Progress implements SnapshotMBean, StreamingMBean {
        volatile boolean running;
        volatile boolean completed;
        volatile boolean connected;
        volatile int remaining = 10;
        volatile long position;
        volatile long behindMs;

        @Override
        public boolean isSnapshotRunning() {
            return running;
        }

        @Override
        public boolean isSnapshotCompleted() {
            return completed;
        }

        @Override
        public boolean isConnected() {
            return connected;
        }

        @Override
        public long getBinlogPosition() {
            return position;
        }

        @Override
        public long getMilliSecondsBehindSource() {
            return behindMs;
        }

        @Override
        public int getQueueTotalCapacity() {
            return 10;
        }

        @Override
        public int getQueueRemainingCapacity() {
            return remaining;
        }
    }

    /** Between changes, it returns heartbeats in each poll if `beats=true`. */
    public static final class ReadingTask extends SourceTask {
        private static final Schema HEARTBEAT = SchemaBuilder.struct()
                .name("io.debezium.connector.common.Heartbeat").field("ts_ms", Schema.OPTIONAL_INT64_SCHEMA).build();
        private final Progress progress = new Progress();
        private long stepMs;
        private boolean streams;
        private volatile boolean hasRecord;
        private boolean beats;
        private long othersMs;

        @Override
        public void start(Map<String, String> values) {
            stepMs = Long.parseLong(values.get("step_ms"));
            othersMs = Long.parseLong(values.getOrDefault("others_ms", "0"));
            beats = "true".equals(values.get("beats"));
            streams = !"initial_only".equals(values.get("snapshot.mode"));
            Thread reader = new Thread(this::read, "reader");
            reader.setDaemon(true);
            reader.start();
        }

        private void read() {
            try {
                Thread.sleep(stepMs);
                register(SnapshotMBean.class, "snapshot");
                Thread.sleep(stepMs);
                progress.running = true;
                Thread.sleep(stepMs);
                progress.running = false;
                progress.completed = true;
                Thread.sleep(stepMs);
                if (streams) {
                    register(StreamingMBean.class, "streaming");
                    Thread.sleep(stepMs);
                    progress.connected = true;
                    readOthers();
                }
                progress.remaining = 9;
                Thread.sleep(stepMs);
                hasRecord = true;
                progress.remaining = 10;
            } catch (Exception error) {
                throw new ConnectException(error);
            }
        }

        /** Changes of an hour ago in tables that are not captured, for as long as `others_ms`. */
        private void readOthers() throws InterruptedException {
            long end = System.nanoTime() + othersMs * 1_000_000;
            while (System.nanoTime() < end) {
                progress.behindMs = 3_600_000;
                progress.position++;
                Thread.sleep(1);
            }
            progress.behindMs = 0;
        }

        private <T> void register(Class<T> kind, String context) throws Exception {
            ObjectName name = new ObjectName("debezium.like:type=connector-metrics,context=" + context + ",server=s");
            Object bean = new javax.management.StandardMBean(kind.cast(progress), kind);
            ManagementFactory.getPlatformMBeanServer().registerMBean(bean, name);
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(5);
            if (!hasRecord) {
                return beats && progress.connected ? List.of(record(HEARTBEAT, new Struct(HEARTBEAT))) : null;
            }
            hasRecord = false;
            return List.of(record(Schema.STRING_SCHEMA, "row"));
        }

        private static SourceRecord record(Schema schema, Object value) {
            return new SourceRecord(Map.of("server", "s"), Map.of("pos", 1L), "t", schema, value);
        }

        @Override
        public void stop() {}

        @Override
        public String version() {
            return "1.0";
        }
    }
}
