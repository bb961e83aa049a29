package org.airflowconnect.host;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.errors.IllegalWorkerStateException;
import org.apache.kafka.connect.sink.ErrantRecordReporter;
import org.apache.kafka.connect.sink.SinkTaskContext;

/** What a sink task gets from its worker, and what it asks of it: kept until the parent reads it. */
final class SinkContext implements SinkTaskContext {
    private static final long NONE = -1;

    private final Map<String, String> config;
    private final Set<TopicPartition> assignment;
    private final ErrantRecords errant;
    private final PluginMetrics metrics = new NoMetrics();
    private final Map<TopicPartition, Long> rewinds = new LinkedHashMap<>();
    private final Set<TopicPartition> paused = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean commitRequested = new AtomicBoolean();
    private final AtomicLong timeoutMs = new AtomicLong(NONE);

    /**
     * @param errant always there, unlike in a worker, which has none without a dead letter queue and without
     *     `errors.log.enable`: plugins then leave records out, and nobody learns of it
     */
    SinkContext(Map<String, String> config, Set<TopicPartition> assignment, ErrantRecords errant) {
        this.config = config;
        this.assignment = assignment;
        this.errant = errant;
    }

    @Override
    public Map<String, String> configs() {
        return config;
    }

    @Override
    public void offset(Map<TopicPartition, Long> offsets) {
        synchronized (rewinds) {
            rewinds.putAll(offsets);
        }
    }

    @Override
    public void offset(TopicPartition partition, long offset) {
        offset(Map.of(partition, offset));
    }

    @Override
    public void timeout(long timeout) {
        timeoutMs.set(timeout);
    }

    @Override
    public Set<TopicPartition> assignment() {
        return assignment;
    }

    @Override
    public void pause(TopicPartition... partitions) {
        paused.addAll(assigned(partitions, "pause"));
    }

    @Override
    public void resume(TopicPartition... partitions) {
        paused.removeAll(assigned(partitions, "resume"));
    }

    @Override
    public void requestCommit() {
        commitRequested.set(true);
    }

    @Override
    public ErrantRecordReporter errantRecordReporter() {
        return errant;
    }

    @Override
    public PluginMetrics pluginMetrics() {
        return metrics;
    }

    /** Adds what the task asks for: offsets to go to, and a commit, once each; partitions that are paused now. */
    void moveTo(ObjectNode result) {
        ArrayNode offsets = result.putArray("rewind");
        synchronized (rewinds) {
            rewinds.forEach((partition, offset) -> offsets.add(Json.array(partition).add(offset)));
            rewinds.clear();
        }
        ArrayNode all = result.putArray("paused");
        paused.forEach(partition -> all.add(Json.array(partition)));
        result.put("commit_requested", commitRequested.getAndSet(false));
    }

    /** How long to wait before records are put again: what the task asked for, or 0. */
    long takeTimeoutMs() {
        return Math.max(0, timeoutMs.getAndSet(NONE));
    }

    private Set<TopicPartition> assigned(TopicPartition[] partitions, String what) {
        Set<TopicPartition> asked = Set.copyOf(Arrays.asList(partitions));
        if (!assignment.containsAll(asked)) {
            throw new IllegalWorkerStateException("A task may " + what + " its own partitions only, not " + asked + ".");
        }
        return asked;
    }
}
