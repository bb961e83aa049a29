package io.confluent.connect.s3;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.sink.SinkConnector;

/**
 * Stands in for Confluent's S3 sink, which no Maven repository has: the same class name, the same keys, the object names
 * that its documentation describes. Written for the tests of this project, in the Java that Spark's Janino compiles.
 */
public class S3SinkConnector extends SinkConnector {
    private Map<String, String> config;

    public String version() {
        return "stand-in";
    }

    public void start(Map<String, String> properties) {
        config = properties;
    }

    public Class taskClass() {
        return S3SinkTask.class;
    }

    public List<Map<String, String>> taskConfigs(int most) {
        List<Map<String, String>> found = new ArrayList<Map<String, String>>();
        for (int task = 0; task < most; task++) {
            found.add(config);
        }
        return found;
    }

    public void stop() {
    }

    public ConfigDef config() {
        return new ConfigDef();
    }
}
