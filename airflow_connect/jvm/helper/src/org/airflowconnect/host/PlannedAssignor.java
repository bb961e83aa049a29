package org.airflowconnect.host;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;

/**
 * Gives each member of a group the partitions that the plan of the run has for it. Members send them as user data, and
 * the leader hands them out unchanged. Public, because Kafka's consumer creates it.
 */
public final class PlannedAssignor implements ConsumerPartitionAssignor, Configurable {
    /** Another assignor has another name, so members that were not planned are refused by the broker. */
    static final String NAME = "airflow-connect-planned";
    /** The key of a consumer's configuration that has the member's partitions, as a collection. */
    static final String PARTITIONS = "airflow.connect.planned.partitions";

    private final Set<TopicPartition> own = new LinkedHashSet<>();

    @Override
    public void configure(Map<String, ?> config) {
        if (config.get(PARTITIONS) instanceof Iterable<?> planned) {
            planned.forEach(partition -> own.add((TopicPartition) partition));
        }
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public ByteBuffer subscriptionUserData(Set<String> topics) {
        ArrayNode json = Json.array();
        own.forEach(partition -> json.add(Json.array(partition)));
        try {
            return ByteBuffer.wrap(Json.bytes(json));
        } catch (IOException error) {
            throw new IllegalStateException("A list of partitions must have a form in JSON.", error);
        }
    }

    @Override
    public GroupAssignment assign(Cluster cluster, GroupSubscription group) {
        Map<String, Assignment> assigned = new HashMap<>();
        group.groupSubscription().forEach((member, subscription) ->
                assigned.put(member, new Assignment(new ArrayList<>(planned(subscription.userData())))));
        return new GroupAssignment(assigned);
    }

    private static Set<TopicPartition> planned(ByteBuffer data) {
        if (data == null) {
            return Set.of();
        }
        byte[] text = new byte[data.remaining()];
        data.duplicate().get(text);
        try {
            return Json.topicPartitions(Json.read(text));
        } catch (IOException error) {
            throw new IllegalStateException("A member of the group has sent partitions that cannot be read.", error);
        }
    }

    @Override
    public List<RebalanceProtocol> supportedProtocols() {
        return List.of(RebalanceProtocol.EAGER);
    }
}
