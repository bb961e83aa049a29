package org.airflowconnect.host;

import java.lang.management.ManagementFactory;
import java.util.Set;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;

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

    private final boolean isDebezium;
    private final boolean endsWithSnapshot;

    Readiness(Class<?> task, String snapshotMode) {
        isDebezium = task.getName().startsWith(DEBEZIUM);
        endsWithSnapshot = ONLY_SNAPSHOT.equals(snapshotMode);
    }

    /** Whether the plugin tells; the parent waits longer for others. */
    boolean isKnown() {
        return isDebezium;
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
        return queueObstacle(streams);
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
