package org.airflowconnect.host;

import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.runtime.WorkerSinkTaskContext;
import org.apache.kafka.connect.sink.ErrantRecordReporter;

/**
 * The context of a plugin that takes the consumer of its worker, by reflection: Apache's Iceberg sink does. Everything
 * else is as for any sink.
 */
final class GroupSinkContext extends WorkerSinkTaskContext {
    private final SinkContext context;

    GroupSinkContext(Consumer<byte[], byte[]> consumer, SinkContext context) {
        super(consumer, null, null);
        this.context = context;
    }

    @Override
    public Map<String, String> configs() {
        return context.configs();
    }

    @Override
    public void offset(Map<TopicPartition, Long> offsets) {
        context.offset(offsets);
    }

    @Override
    public void offset(TopicPartition partition, long offset) {
        context.offset(partition, offset);
    }

    @Override
    public void timeout(long timeout) {
        context.timeout(timeout);
    }

    @Override
    public Set<TopicPartition> assignment() {
        return context.assignment();
    }

    @Override
    public void pause(TopicPartition... partitions) {
        context.pause(partitions);
    }

    @Override
    public void resume(TopicPartition... partitions) {
        context.resume(partitions);
    }

    @Override
    public void requestCommit() {
        context.requestCommit();
    }

    @Override
    public ErrantRecordReporter errantRecordReporter() {
        return context.errantRecordReporter();
    }

    @Override
    public PluginMetrics pluginMetrics() {
        return context.pluginMetrics();
    }

    @Override
    public String toString() {
        return "GroupSinkContext";
    }
}
