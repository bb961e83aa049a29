package org.airflowconnect.host;

import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Set;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Whether an empty poll of a source means that there is nothing.
 *
 * <p>Debezium reads in threads of its own, and poll() returns nothing while they connect or make a snapshot. A run that
 * took that for the end would stop in the middle of the snapshot, each time. Debezium's MBeans, in this JVM, tell.
 */
final class Readiness {
    private static final String DEBEZIUM = "io.debezium.";
    private static final String NAMES = "debezium.*:type=connector-metrics,context=%s,*";
    private static final String ONLY_SNAPSHOT = "initial_only";
    /** Name of the value's schema. Source: io.debezium.schema.SchemaFactory. */
    private static final String HEARTBEAT = "io.debezium.connector.common.Heartbeat";

    /** Attributes of which one changes with each event, also with those of tables that are not captured. */
    private static final List<String> PLACES = List.of(
            "BinlogFilename", "BinlogPosition", "TotalNumberOfEventsSeen", "NumberOfEventsFiltered");

    private final boolean isDebezium;
    private final boolean endsWithSnapshot;
    private final long startedMs = System.currentTimeMillis();
    private String place = "";

    Readiness(Class<?> task, String snapshotMode) {
        isDebezium = task.getName().startsWith(DEBEZIUM);
        endsWithSnapshot = ONLY_SNAPSHOT.equals(snapshotMode);
    }

    /** Whether the plugin tells; the parent waits longer for others. */
    boolean isKnown() {
        return isDebezium;
    }

    /** Whether a batch only tells that the plugin lives: it comes by a clock, so it is no sign of more to read. */
    boolean isQuiet(List<SourceRecord> batch) {
        if (batch == null || batch.isEmpty()) {
            return true;
        }
        return isDebezium && batch.stream().map(SourceRecord::valueSchema)
                .allMatch(schema -> schema != null && HEARTBEAT.equals(schema.name()));
    }

    /** Why the source is not ready, or "". */
    String obstacle() {
        if (!isDebezium) {
            return "";
        }
        Set<ObjectName> snapshots = find("snapshot");
        Set<ObjectName> streams = find("streaming");
        if (snapshots.isEmpty() && streams.isEmpty()) {
            return "it has no metrics yet";
        }
        boolean hasSnapshot = false;
        for (ObjectName snapshot : snapshots) {
            if (isTrue(snapshot, "SnapshotRunning")) {
                return "its snapshot is running";
            }
            hasSnapshot |= isTrue(snapshot, "SnapshotCompleted") || isTrue(snapshot, "SnapshotSkipped");
        }
        if (!snapshots.isEmpty() && !hasSnapshot) {
            return "its snapshot has not begun";
        }
        return endsWithSnapshot ? queueObstacle(snapshots) : streamObstacle(streams);
    }

    private String streamObstacle(Set<ObjectName> streams) {
        if (streams.isEmpty()) {
            return "it does not stream yet";
        }
        for (ObjectName stream : streams) {
            if (!isTrue(stream, "Connected")) {
                return "it is not connected yet";
            }
        }
        String queue = queueObstacle(streams);
        return queue.isEmpty() && readsTheOld(streams) ? "it still reads changes from before the run" : queue;
    }

    /**
     * Whether it has read on since the last question, and is at changes that are older than this task. None of them may
     * be of the captured tables: then poll() returns nothing, although changes that it will return come after them.
     */
    private boolean readsTheOld(Set<ObjectName> streams) {
        String before = place;
        long behindMs = 0;
        StringBuilder now = new StringBuilder();
        for (ObjectName stream : streams) {
            PLACES.forEach(name -> now.append(attribute(stream, name)).append(' '));
            if (attribute(stream, "MilliSecondsBehindSource") instanceof Long lag) {
                behindMs = Math.max(behindMs, lag);
            }
        }
        place = now.toString();
        return !place.equals(before) && behindMs > System.currentTimeMillis() - startedMs;
    }

    private String queueObstacle(Set<ObjectName> contexts) {
        for (ObjectName context : contexts) {
            Object total = attribute(context, "QueueTotalCapacity");
            if (total != null && !total.equals(attribute(context, "QueueRemainingCapacity"))) {
                return "its queue is not empty";
            }
        }
        return "";
    }

    private Set<ObjectName> find(String context) {
        try {
            return beans().queryNames(new ObjectName(String.format(NAMES, context)), null);
        } catch (MalformedObjectNameException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static MBeanServer beans() {
        return ManagementFactory.getPlatformMBeanServer();
    }

    private boolean isTrue(ObjectName name, String attribute) {
        return Boolean.TRUE.equals(attribute(name, attribute));
    }

    /** Null: the bean has no such attribute, or is gone. */
    private Object attribute(ObjectName name, String attribute) {
        try {
            return beans().getAttribute(name, attribute);
        } catch (JMException gone) {
            return null;
        }
    }
}
