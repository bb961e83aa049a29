package org.airflowconnect.host;

import java.util.LinkedHashMap;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.MetricValueProvider;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.common.metrics.Sensor;

/** Metrics that a plugin can use, but nobody reads: a run is over before anyone could scrape them. */
final class NoMetrics implements PluginMetrics {
    private final Metrics metrics = new Metrics();

    @Override
    public MetricName metricName(String name, String description, LinkedHashMap<String, String> tags) {
        return new MetricName(name, "plugins", description, tags);
    }

    @Override
    public void addMetric(MetricName name, MetricValueProvider<?> provider) {
        metrics.addMetric(name, provider);
    }

    @Override
    public void removeMetric(MetricName name) {
        metrics.removeMetric(name);
    }

    @Override
    public Sensor addSensor(String name) {
        return metrics.sensor(name);
    }

    @Override
    public void removeSensor(String name) {
        metrics.removeSensor(name);
    }
}
