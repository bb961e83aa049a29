// Prints what Kafka Connect 4.3.1 finds in a plugin.path by its own scan of all classes (plugin.discovery=only_scan).
// kafka_scan.json has its output for one folder for each lock of tests/devstack/locks, and connect-file alone of
// kafka-connect-4.3.1. It also names io.debezium.converters.CloudEventsConverter as a class whose static
// initialization fails. Run: java -cp <jars of kafka-4.3.1 and kafka-connect-4.3.1> PluginScan.java <plugin.path>

import java.net.URL;
import java.util.List;
import java.util.SortedSet;
import org.apache.kafka.connect.runtime.isolation.PluginClassLoader;
import org.apache.kafka.connect.runtime.isolation.PluginClassLoaderFactory;
import org.apache.kafka.connect.runtime.isolation.PluginDesc;
import org.apache.kafka.connect.runtime.isolation.PluginScanResult;
import org.apache.kafka.connect.runtime.isolation.PluginUtils;
import org.apache.kafka.connect.runtime.isolation.ReflectionScanner;

public class PluginScan {
    public static void main(String[] arguments) throws Exception {
        PluginClassLoaderFactory loaders = new PluginClassLoaderFactory() {
            @Override
            public PluginClassLoader newPluginClassLoader(URL location, URL[] urls, ClassLoader parent) {
                return new PluginClassLoader(location, urls, parent);
            }
        };
        PluginScanResult found = new ReflectionScanner().discoverPlugins(PluginUtils.pluginSources(
                PluginUtils.pluginLocations(arguments[0], true), PluginScan.class.getClassLoader(), loaders));
        List<SortedSet<? extends PluginDesc<?>>> kinds = List.of(
                found.sinkConnectors(), found.sourceConnectors(), found.converters(), found.headerConverters(),
                found.transformations(), found.predicates(), found.configProviders());
        for (SortedSet<? extends PluginDesc<?>> kind : kinds) {
            for (PluginDesc<?> plugin : kind) {
                if (!plugin.location().equals("classpath")) {
                    System.out.println(String.join("\t",
                            plugin.typeName(), plugin.className(), plugin.version(), plugin.location()));
                }
            }
        }
    }
}
