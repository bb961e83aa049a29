package org.airflowconnect.host;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;

/** The version of the Kafka Connect runtime. Kafka's own class for it has moved in 4.4; its file has not. */
final class ConnectVersion {
    private static final String FILE = "/kafka/kafka-version.properties";

    private ConnectVersion() {}

    static String get() {
        Properties properties = new Properties();
        try (InputStream file = ConnectVersion.class.getResourceAsStream(FILE)) {
            if (file != null) {
                properties.load(file);
            }
        } catch (IOException unreadable) {
            System.err.println(FILE + " cannot be read: " + unreadable);
        }
        return properties.getProperty("version", "unknown");
    }
}
