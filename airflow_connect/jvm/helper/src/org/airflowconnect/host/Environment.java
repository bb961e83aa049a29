package org.airflowconnect.host;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.runtime.ConnectMetrics;
import org.apache.kafka.connect.runtime.isolation.PluginClassLoader;
import org.apache.kafka.connect.runtime.isolation.PluginUtils;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.runtime.standalone.StandaloneConfig;
import org.apache.maven.artifact.versioning.VersionRange;

/**
 * Kafka Connect's own plugin loading, without a worker. A worker's configuration has to exist for metrics; nothing of
 * it is ever used, so no address in it is contacted and no file written.
 */
final class Environment {
    private static final String BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter";
    private static final String NEWEST_NEEDED_CLASS = "org.apache.kafka.common.metrics.PluginMetrics";
    private static final String CONNECTOR_CLASS = "connector.class";
    private static final String CONNECTOR_VERSION = "connector.plugin.version";

    private final Plugins plugins;
    private final ConnectMetrics metrics;

    Environment(List<String> folders) throws VersionException {
        try {
            Class.forName(NEWEST_NEEDED_CLASS);
        } catch (ClassNotFoundException tooOld) {
            throw new VersionException(ConnectVersion.get());
        }
        Map<String, String> worker = new HashMap<>();
        worker.put("bootstrap.servers", "127.0.0.1:1");
        worker.put("offset.storage.file.filename", "/dev/null");
        worker.put("key.converter", BYTES);
        worker.put("value.converter", BYTES);
        // Scanning takes up to a minute; the parent adds the service files that plugins lack.
        worker.put("plugin.discovery", "service_load");
        if (!folders.isEmpty()) {
            worker.put("plugin.path", String.join(",", folders));
        }
        plugins = new Plugins(worker);
        plugins.compareAndSwapWithDelegatingLoader();
        metrics = new ConnectMetrics("plugin-host", new StandaloneConfig(worker), Time.SYSTEM, "plugin-host");
    }

    Plugins plugins() {
        return plugins;
    }

    ConnectMetrics metrics() {
        return metrics;
    }

    /** A new connector of the class, and version, that the configuration names. */
    Connector newConnector(Map<String, String> config) throws PluginFailure {
        String name = config.get(CONNECTOR_CLASS);
        return new Calls(plugins, plugins.delegatingLoader())
                .call("constructor", name, () -> plugins.newConnector(name, version(config)));
    }

    /** Calls of the connector's plugin, with the class loader that it expects. */
    Calls callsFor(Map<String, String> config) throws PluginFailure {
        String name = config.get(CONNECTOR_CLASS);
        Class<?> found = new Calls(plugins, plugins.delegatingLoader())
                .call("class", name, () -> plugins.connectorClass(name, version(config)));
        return callsFor(found);
    }

    /** A class on the class path has no loader of its own, and aliases of transformations need the delegating one. */
    Calls callsFor(Class<?> plugin) {
        ClassLoader own = plugin.getClassLoader();
        return new Calls(plugins, own instanceof PluginClassLoader ? own : plugins.delegatingLoader());
    }

    private static VersionRange version(Map<String, String> config) throws Exception {
        return PluginUtils.connectorVersionRequirement(config.get(CONNECTOR_VERSION));
    }
}
