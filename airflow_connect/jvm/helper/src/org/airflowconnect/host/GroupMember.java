package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InconsistentGroupProtocolException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A member of the consumer group of a sink whose plugin commits the offsets of the group itself. It has the partitions
 * that the plan has for its task, and reads none of them: the run does. It only stays a member, so that Kafka refuses
 * offsets of a task whose run is over.
 *
 * <p>Kafka's consumer is for one thread. A thread of this object polls it, and the plugin gets a consumer whose calls
 * wait for their turn.
 */
final class GroupMember {
    private static final Duration POLL = Duration.ofMillis(50);
    private static final long PAUSE_NANOS = 5_000_000;
    private static final long LOOK_NANOS = 100_000_000;

    private final String group;
    private final Set<TopicPartition> own;
    private final Consumer<byte[], byte[]> consumer;
    private final Admin admin;
    private final ReentrantLock turn = new ReentrantLock(true);
    private final AtomicReference<GroupException> failure = new AtomicReference<>();
    private final Thread poller;
    private volatile boolean isJoined;
    private volatile boolean isLeaving;

    /**
     * @param request {@code id}, the group; {@code config}, of a consumer
     * @param own the partitions of this task
     */
    GroupMember(JsonNode request, Set<TopicPartition> own) {
        this.group = request.path("id").asText();
        this.own = own;
        Map<String, Object> config = new HashMap<>(Json.config(request.path("config")));
        admin = Admin.create(new HashMap<>(config));
        config.put("group.id", group);
        config.put("group.protocol", "classic");
        config.put("partition.assignment.strategy", PlannedAssignor.class.getName());
        config.put(PlannedAssignor.PARTITIONS, own);
        config.put("enable.auto.commit", false);
        config.put("auto.offset.reset", "earliest"); // Of positions only: nothing is read.
        config.put("isolation.level", "read_committed"); // Offsets of an open transaction are waited for.
        config.put("allow.auto.create.topics", false);
        config.remove("group.instance.id");
        consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        poller = new Thread(this::poll, "group-member");
        poller.setDaemon(true);
    }

    /**
     * Joins, and waits until all members of the run have.
     *
     * @param everyone the partitions of all tasks of the run
     */
    void join(Set<TopicPartition> everyone, long timeoutMs) throws GroupException {
        Set<String> topics = new TreeSet<>();
        own.forEach(partition -> topics.add(partition.topic()));
        consumer.subscribe(topics, new Rebalances());
        poller.start();
        long deadline = System.nanoTime() + timeoutMs * 1_000_000;
        Set<TopicPartition> missing = everyone;
        while (System.nanoTime() < deadline) {
            check();
            missing = missing(everyone);
            if (missing.isEmpty() && consumerOf(consumer::assignment).equals(own)) {
                isJoined = true;
                return;
            }
            LockSupport.parkNanos(LOOK_NANOS);
        }
        throw new GroupException("No task has joined the consumer group " + group + " for " + names(missing) + " within "
                + timeoutMs / 1000.0 + " s. All tasks of the run must run at the same time.");
    }

    /** What the plugin calls from any thread. */
    @SuppressWarnings("unchecked")
    Consumer<byte[], byte[]> consumer() {
        return (Consumer<byte[], byte[]>) Proxy.newProxyInstance(
                GroupMember.class.getClassLoader(), new Class<?>[] {Consumer.class}, (proxy, method, arguments) ->
                        consumerOf(() -> {
                            try {
                                return method.invoke(consumer, arguments);
                            } catch (InvocationTargetException thrown) {
                                throw thrown.getCause() instanceof Exception error ? error : thrown;
                            }
                        }));
    }

    /** Fails if this is no member any more, or if the group has changed since all had joined. */
    void check() throws GroupException {
        GroupException found = failure.get();
        if (found != null) {
            throw found;
        }
    }

    /** What the group has committed; partitions without an offset are left out. */
    Map<TopicPartition, OffsetAndMetadata> committed(Set<TopicPartition> partitions) throws GroupException {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        try {
            consumerOf(() -> consumer.committed(partitions)).forEach((partition, offset) -> {
                if (offset != null) {
                    found.put(partition, offset);
                }
            });
        } catch (RuntimeException error) {
            throw new GroupException("The offsets of the consumer group " + group + " cannot be read: "
                    + Failures.text(error) + ".", error);
        }
        return found;
    }

    /** Commits offsets as this member: Kafka refuses them if the group has gone on without it. */
    void commit(Map<TopicPartition, OffsetAndMetadata> offsets) throws GroupException {
        try {
            consumerOf(() -> {
                consumer.commitSync(offsets);
                return null;
            });
        } catch (RuntimeException error) {
            throw new GroupException("The consumer group " + group + " has refused offsets of this task: "
                    + Failures.text(error) + ".", error);
        }
    }

    /** Leaves the group. */
    void close() {
        isLeaving = true;
        consumer.wakeup();
        try {
            if (poller.isAlive()) {
                poller.join();
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return; // The broker notices in the end.
        }
        consumer.close();
        admin.close(Duration.ZERO);
    }

    private void poll() {
        while (!isLeaving && failure.get() == null) {
            turn.lock();
            try {
                consumer.poll(POLL);
            } catch (org.apache.kafka.common.errors.WakeupException leaving) {
                continue;
            } catch (InconsistentGroupProtocolException others) {
                fail(new GroupException("Another consumer is a member of the consumer group " + group + ".", others));
            } catch (RuntimeException error) {
                fail(new GroupException("The consumer group " + group + " cannot be joined: " + Failures.text(error)
                        + ".", error));
            } finally {
                turn.unlock();
            }
            LockSupport.parkNanos(PAUSE_NANOS); // The plugin gets a turn.
        }
    }

    private void fail(GroupException error) {
        if (!isLeaving) {
            failure.compareAndSet(null, error);
        }
    }

    private Set<TopicPartition> missing(Set<TopicPartition> everyone) throws GroupException {
        ConsumerGroupDescription found;
        try {
            found = admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get();
        } catch (ExecutionException error) {
            if (error.getCause() instanceof org.apache.kafka.common.errors.GroupIdNotFoundException
                    || error.getCause() instanceof org.apache.kafka.common.errors.RetriableException) {
                return everyone; // It exists once the first member has joined.
            }
            throw new GroupException("The consumer group " + group + " cannot be described: "
                    + Failures.text(error.getCause()) + ".", error.getCause());
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new GroupException("The wait for the consumer group " + group + " was interrupted.", interrupted);
        }
        Set<TopicPartition> missing = new LinkedHashSet<>(everyone);
        Set<TopicPartition> foreign = new HashSet<>();
        found.members().forEach(member -> member.assignment().topicPartitions().forEach(partition -> {
            if (!missing.remove(partition)) {
                foreign.add(partition);
            }
        }));
        if (!foreign.isEmpty()) {
            throw new GroupException("Another consumer is a member of the consumer group " + group + ": it has "
                    + names(foreign) + ".");
        }
        return found.groupState() == GroupState.STABLE ? missing : everyone;
    }

    private <T> T consumerOf(Callable<T> call) {
        turn.lock();
        try {
            return call.call();
        } catch (RuntimeException error) {
            throw error;
        } catch (Exception error) {
            throw new IllegalStateException(error);
        } finally {
            turn.unlock();
        }
    }

    private static String names(Collection<TopicPartition> partitions) {
        Set<String> names = new TreeSet<>();
        partitions.forEach(partition -> names.add(partition.toString()));
        return String.join(", ", names);
    }

    /** Called while this member polls. */
    private final class Rebalances implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            consumer.pause(partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            if (isJoined) {
                fail(new GroupException("The members of the consumer group " + group + " have changed while the run copied:"
                        + " a task of the run has ended early, or another consumer has joined."));
            }
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            fail(new GroupException("This task is no member of the consumer group " + group
                    + " any more: it has not answered the broker in time, or the group was changed by force."));
        }
    }
}
