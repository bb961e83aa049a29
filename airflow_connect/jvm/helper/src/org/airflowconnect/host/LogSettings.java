package org.airflowconnect.host;

/**
 * What plugins and Kafka Connect log: warnings and errors, to standard error, and never configurations, which may hold
 * secrets. slf4j-simple reads these properties when the first logger is made; options of the JVM come first.
 */
final class LogSettings {
    private static final String PREFIX = "org.slf4j.simpleLogger.";
    private static final String[][] SETTINGS = {
        {"defaultLogLevel", "warn"},
        {"logFile", "System.err"},
        {"showThreadName", "false"},
        {"log.org.apache.kafka.common.config", "off"},
        {"log.org.apache.kafka.connect.runtime.ConnectorConfig", "off"},
        {"log.org.apache.kafka.connect.runtime.SinkConnectorConfig", "off"},
        {"log.org.apache.kafka.connect.runtime.SourceConnectorConfig", "off"},
        {"log.org.apache.kafka.connect.runtime.standalone.StandaloneConfig", "off"},
        // It reports optional classes of plugins that cannot be linked, as errors.
        {"log.org.apache.kafka.connect.runtime.isolation", "off"},
    };

    private LogSettings() {}

    static void apply() {
        for (String[] setting : SETTINGS) {
            String name = PREFIX + setting[0];
            if (System.getProperty(name) == null) {
                System.setProperty(name, setting[1]);
            }
        }
    }
}
