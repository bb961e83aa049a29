package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Java converters, transformations and predicates in a chain that Python runs. Records cross as Connect's data
 * ({@link DataConverter}). The records of a request go through one plugin, in their order, up to the first that fails:
 * what becomes of that one is decided by the parent, which sends the rest again.
 */
final class Stages implements TaskHost {
    /** Of an answer, but for its last record: a plugin may make much of little. */
    private static final long MOST_BYTES = 8 << 20;

    private final Environment environment;
    private final DataConverter data = new DataConverter();
    private final Map<Integer, StagePlugin> opened = new HashMap<>();

    Stages(Environment environment) {
        this.environment = environment;
    }

    void open(JsonNode request) throws PluginFailure {
        opened.put(request.path("stage").asInt(), new StagePlugin(
                environment,
                request.path("kind").asText(),
                request.path("class").asText(),
                Json.config(request.path("config"))));
    }

    /**
     * Answers with the rows that were dropped, or for which a predicate is true, and what the others have become. After
     * {@code budget_ms}, or {@code MOST_BYTES} of results, it ends with the row that it is at: {@code done} of them have
     * gone through the plugin.
     */
    Reply run(JsonNode request, byte[] body) throws PluginFailure {
        data.learn(request.path("schemas"));
        data.forgetIfMany();
        StagePlugin plugin = opened.get(request.path("stage").asInt());
        Run run = new Run(plugin, request, new FrameReader(request, body));
        long started = System.nanoTime();
        long budget = TimeUnit.MILLISECONDS.toNanos(request.path("budget_ms").asLong());
        int done = 0;
        RecordFailure failure = null;
        while (done < run.frame.rows()
                && (done == 0 || (System.nanoTime() - started < budget && run.out.bytes() < MOST_BYTES))) {
            failure = run.step(done);
            if (failure != null) {
                break;
            }
            done++;
        }
        ObjectNode json = Json.object();
        json.put("done", done);
        run.out.describe(json);
        json.set("picked", run.picked);
        json.set("schemas", data.takeFresh());
        if (failure != null) {
            Traces traces = new Traces();
            ObjectNode failed = Failures.record(failure, "", traces);
            failed.put("retriable", Failures.isRetriable(failure.getCause()));
            json.set("failed", Json.array().add(failed));
            json.set("failed_traces", traces.json());
        }
        return Reply.of(json, run.out.buffers());
    }

    @Override
    public List<String> close(long callMs) {
        List<String> warnings = new ArrayList<>();
        for (StagePlugin plugin : opened.values()) {
            new Stopping(callMs, plugin.calls, plugin.name(), warnings).run("close", plugin::close);
        }
        return warnings;
    }

    /** One request. */
    private final class Run {
        private final StagePlugin plugin;
        private final String operation;
        private final boolean isSource;
        private final JsonNode positions;
        private final FrameReader frame;
        private final FrameWriter out = new FrameWriter();
        private final ArrayNode picked = Json.array();

        Run(StagePlugin plugin, JsonNode request, FrameReader frame) {
            this.plugin = plugin;
            this.frame = frame;
            operation = request.path("do").asText();
            isSource = request.has("positions");
            positions = request.path("positions");
        }

        /** The failure of a record, or null. */
        RecordFailure step(int row) throws PluginFailure {
            try {
                plugin.calls.run(operation, plugin.name(), () -> {
                    try {
                        perform(row);
                    } catch (Exception error) {
                        throw new RecordFailure(plugin.stage, plugin.plugin.getClass(), error);
                    }
                });
                return null;
            } catch (PluginFailure wrapped) {
                if (wrapped.getCause() instanceof RecordFailure failure) {
                    return failure;
                }
                throw wrapped; // An error of Java is no failure of a record, in Connect neither.
            }
        }

        private void perform(int row) {
            switch (operation) {
                case "apply" -> apply(row);
                case "test" -> {
                    if (isSource ? plugin.test(sourceRecord(row)) : plugin.test(sinkRecord(row))) {
                        picked.add(row);
                    }
                }
                case "to_connect" -> {
                    Message message = frame.message(row);
                    SchemaAndValue found = plugin.toConnect(message, header(message));
                    out.add(withValue(message, data.fromConnectData(message.topic(), found.schema(), found.value())));
                }
                case "from_connect" -> {
                    Message message = frame.message(row);
                    SchemaAndValue given = data.toConnectData(message.topic(), message.value());
                    out.add(withValue(message, plugin.fromConnect(message, header(message), given)));
                }
                default -> throw new IllegalArgumentException("There is no operation " + operation + ".");
            }
        }

        private void apply(int row) {
            ConnectRecord<?> changed =
                    isSource ? plugin.apply(sourceRecord(row)) : plugin.apply(sinkRecord(row));
            if (changed == null) {
                picked.add(row);
            } else {
                out.add(message(changed));
            }
        }

        private Message message(ConnectRecord<?> record) {
            if (record.topic() == null) {
                throw new DataException("The record has no topic.");
            }
            Headers headers = new RecordHeaders();
            if (record.headers() != null) {
                for (var header : record.headers()) {
                    PackWriter.requirePairs(header.key());
                    headers.add(header.key(), data.fromConnectData(record.topic(), header.schema(), header.value()));
                }
            }
            return new Message(
                    record.topic(),
                    record.kafkaPartition() == null ? -1 : record.kafkaPartition(),
                    -1,
                    record.timestamp() == null ? -1 : record.timestamp(),
                    data.fromConnectData(record.topic(), record.keySchema(), record.key()),
                    data.fromConnectData(record.topic(), record.valueSchema(), record.value()),
                    headers);
        }

        private SinkRecord sinkRecord(int row) {
            Message message = frame.message(row);
            SchemaAndValue key = data.toConnectData(message.topic(), message.key());
            SchemaAndValue value = data.toConnectData(message.topic(), message.value());
            return new SinkRecord(
                    frame.currentTopic(row), frame.currentPartition(row), key.schema(), key.value(), value.schema(),
                    value.value(), message.offset(), timestamp(message), frame.timestampType(), headers(message),
                    message.topic(), message.partition(), message.offset());
        }

        private SourceRecord sourceRecord(int row) {
            Message message = frame.message(row);
            SchemaAndValue key = data.toConnectData(message.topic(), message.key());
            SchemaAndValue value = data.toConnectData(message.topic(), message.value());
            JsonNode position = positions.get(row);
            return new SourceRecord(
                    Json.map(position.get(0)), Json.map(position.get(1)), message.topic(),
                    message.partition() < 0 ? null : message.partition(), key.schema(), key.value(), value.schema(),
                    value.value(), timestamp(message), headers(message));
        }

        private ConnectHeaders headers(Message message) {
            ConnectHeaders headers = new ConnectHeaders();
            for (var header : message.headers()) {
                headers.add(header.key(), data.toConnectData(message.topic(), header.value()));
            }
            return headers;
        }

        private static Long timestamp(Message message) {
            return message.timestamp() == -1 ? null : message.timestamp();
        }

        /** Of a header, the key of the message is its name. */
        private static String header(Message message) {
            return message.key() == null ? null : new String(message.key(), StandardCharsets.UTF_8);
        }

        private static Message withValue(Message message, byte[] value) {
            return new Message(message.topic(), message.partition(), -1, message.timestamp(), null, value, new RecordHeaders());
        }
    }
}
