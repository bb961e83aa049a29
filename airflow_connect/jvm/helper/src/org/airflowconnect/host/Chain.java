package org.airflowconnect.host;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.runtime.ConnectorConfig;
import org.apache.kafka.connect.runtime.TransformationStage;
import org.apache.kafka.connect.runtime.errors.Stage;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * Converters and transformations of a task, made by Kafka Connect's own code. Each of their calls is repeated as
 * {@code errors.retry.timeout} says, and what remains is the failure of one record.
 */
final class Chain<R extends ConnectRecord<R>> {
    private static final long FIRST_DELAY_MS = 300; // Connect's.

    private final Converter keys;
    private final Converter values;
    private final HeaderConverter headers;
    private final List<TransformationStage<R>> stages;
    private final long retryTimeoutMs;
    private final long mostDelayMs;

    private Chain(Converter keys, Converter values, HeaderConverter headers, List<TransformationStage<R>> stages, ConnectorConfig config) {
        this.keys = keys;
        this.values = values;
        this.headers = headers;
        this.stages = stages;
        retryTimeoutMs = config.errorRetryTimeout();
        mostDelayMs = config.errorMaxDelayInMillis();
    }

    /** @param data where Python runs the converters and transformations; null: this chain does */
    static <R extends ConnectRecord<R>> Chain<R> open(
            Environment environment, ConnectorConfig config, ConnectorTaskId task, DataConverter data) {
        return data == null ? open(environment, config, task) : new Chain<>(data, data, data, List.of(), config);
    }

    private static <R extends ConnectRecord<R>> Chain<R> open(
            Environment environment, ConnectorConfig config, ConnectorTaskId task) {
        var plugins = environment.plugins();
        Converter keys = plugins.newConverter(
                config, ConnectorConfig.KEY_CONVERTER_CLASS_CONFIG, ConnectorConfig.KEY_CONVERTER_VERSION_CONFIG);
        Converter values = plugins.newConverter(
                config, ConnectorConfig.VALUE_CONVERTER_CLASS_CONFIG, ConnectorConfig.VALUE_CONVERTER_VERSION_CONFIG);
        if (keys == null || values == null) {
            throw new ConfigException("The configuration names no " + (keys == null ? "key" : "value") + ".converter.");
        }
        HeaderConverter headers = plugins.newHeaderConverter(
                config, ConnectorConfig.HEADER_CONVERTER_CLASS_CONFIG, ConnectorConfig.HEADER_CONVERTER_VERSION_CONFIG);
        if (headers == null) {
            headers = new SimpleHeaderConverter(); // A worker's default.
            headers.configure(Map.of());
        }
        List<TransformationStage<R>> stages = config.transformationStages(plugins, task, environment.metrics());
        return new Chain<>(keys, values, headers, stages, config);
    }

    /** The record as the transformations leave it, or null: one of them drops it. */
    R transform(R record) throws RecordFailure {
        R current = record;
        for (TransformationStage<R> stage : stages) {
            R before = current;
            current = attempt(Stage.TRANSFORMATION, stage.transformClass(), () -> stage.apply(before));
            if (current == null) {
                return null;
            }
        }
        return current;
    }

    /** Headers first: converters of keys and values may add to them. */
    Message toMessage(R record, int partition, long timestamp) throws RecordFailure {
        Headers converted = new RecordHeaders();
        if (record.headers() != null) {
            for (var header : record.headers()) {
                byte[] bytes = attempt(Stage.HEADER_CONVERTER, headers.getClass(), () ->
                        headers.fromConnectHeader(record.topic(), header.key(), header.schema(), header.value()));
                converted.add(header.key(), bytes);
            }
        }
        byte[] key = attempt(Stage.KEY_CONVERTER, keys.getClass(),
                () -> keys.fromConnectData(record.topic(), converted, record.keySchema(), record.key()));
        byte[] value = attempt(Stage.VALUE_CONVERTER, values.getClass(),
                () -> values.fromConnectData(record.topic(), converted, record.valueSchema(), record.value()));
        return new Message(record.topic(), partition, -1, timestamp, key, value, converted);
    }

    SchemaAndValue key(Message message) throws RecordFailure {
        return attempt(Stage.KEY_CONVERTER, keys.getClass(),
                () -> keys.toConnectData(message.topic(), message.headers(), message.key()));
    }

    SchemaAndValue value(Message message) throws RecordFailure {
        return attempt(Stage.VALUE_CONVERTER, values.getClass(),
                () -> values.toConnectData(message.topic(), message.headers(), message.value()));
    }

    ConnectHeaders headers(Message message) throws RecordFailure {
        ConnectHeaders converted = new ConnectHeaders();
        for (Header header : message.headers()) {
            converted.add(header.key(), attempt(Stage.HEADER_CONVERTER, headers.getClass(),
                    () -> headers.toConnectHeader(message.topic(), header.key(), header.value())));
        }
        return converted;
    }

    /** Closes all parts; what they throw is returned, because the records are copied already. */
    List<String> close() {
        List<String> warnings = new ArrayList<>();
        List<AutoCloseable> parts = new ArrayList<>(stages);
        parts.add(keys);
        parts.add(values);
        parts.add(headers);
        for (AutoCloseable part : parts) {
            try {
                part.close();
            } catch (Exception error) {
                warnings.add(part.getClass().getName() + " could not be closed: " + Failures.text(error));
            }
        }
        return warnings;
    }

    /** Errors are no failures of a record: Connect does not tolerate them either. */
    private <T> T attempt(Stage stage, Class<?> executing, Callable<T> call) throws RecordFailure {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(retryTimeoutMs);
        for (int attempt = 0; ; attempt++) {
            try {
                return call.call();
            } catch (RetriableException error) {
                boolean isLate = retryTimeoutMs >= 0 && System.nanoTime() - deadline >= 0;
                if (isLate || !pause(attempt)) {
                    throw new RecordFailure(stage, executing, error);
                }
            } catch (Exception error) {
                throw new RecordFailure(stage, executing, error);
            }
        }
    }

    /** Waits before another attempt, twice as long each time; false: the task is being stopped. */
    private boolean pause(int attempt) {
        long delay = FIRST_DELAY_MS << Math.min(attempt, 20);
        if (delay > mostDelayMs) {
            delay = ThreadLocalRandom.current().nextLong(mostDelayMs + 1);
        }
        try {
            Thread.sleep(delay);
            return true;
        } catch (InterruptedException stopping) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
