package org.airflowconnect.host;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;

/** JSON as the wire uses it. Integers are read as Long, as Kafka Connect reads stored offsets. */
final class Json {
    private static final ObjectMapper MAPPER =
            new ObjectMapper().enable(DeserializationFeature.USE_LONG_FOR_INTS);

    private Json() {}

    static ObjectNode object() {
        return MAPPER.createObjectNode();
    }

    static ArrayNode array() {
        return MAPPER.createArrayNode();
    }

    static JsonNode read(byte[] text) throws IOException {
        return MAPPER.readTree(text);
    }

    static byte[] bytes(JsonNode node) throws JsonProcessingException {
        return MAPPER.writeValueAsBytes(node);
    }

    /** A value of Connect's own REST classes. */
    static JsonNode tree(Object value) {
        return MAPPER.valueToTree(value);
    }

    /** A configuration; a null value is a key without one, as in Connect. */
    static Map<String, String> config(JsonNode node) {
        Map<String, String> config = new LinkedHashMap<>();
        node.properties().forEach(
                field -> config.put(field.getKey(), field.getValue().isNull() ? null : field.getValue().asText()));
        return config;
    }

    /** A map as Connect hands out stored offsets; null for JSON's null. */
    @SuppressWarnings("unchecked")
    static Map<String, Object> map(JsonNode node) {
        try {
            return (Map<String, Object>) MAPPER.treeToValue(node, Map.class);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException("No JSON object: " + node.getNodeType(), error);
        }
    }

    static List<String> texts(JsonNode node) {
        List<String> texts = new ArrayList<>();
        node.forEach(text -> texts.add(text.asText()));
        return texts;
    }

    static TopicPartition topicPartition(JsonNode node) {
        return new TopicPartition(node.get(0).asText(), node.get(1).asInt());
    }

    static Set<TopicPartition> topicPartitions(JsonNode node) {
        Set<TopicPartition> partitions = new LinkedHashSet<>();
        node.forEach(partition -> partitions.add(topicPartition(partition)));
        return partitions;
    }

    static ArrayNode array(TopicPartition partition) {
        return array().add(partition.topic()).add(partition.partition());
    }
}
