package plugins;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.TransactionContext;

/**
 * `files` source partitions with `rows` records each, of `topics` topics; it resumes at its offsets. Polls have up to
 * `batch` records of all its files in turn. A transaction ends in the middle of a poll, and with it, if the plugin may
 * decide. Every seventh record has the header `drop`.
 */
public final class ResumingSource extends BaseSource {
    @Override
    public Class<? extends Task> taskClass() {
        return ResumingTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        List<Map<String, String>> tasks = new ArrayList<>();
        for (int task = 0; task < most; task++) {
            Map<String, String> one = new LinkedHashMap<>(config);
            one.put("task", Integer.toString(task));
            one.put("tasks", Integer.toString(most));
            tasks.add(one);
        }
        return tasks;
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> values) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    @Override
    public ConnectorTransactionBoundaries canDefineTransactionBoundaries(Map<String, String> values) {
        return ConnectorTransactionBoundaries.SUPPORTED;
    }

    /** Its task. */
    public static final class ResumingTask extends BaseTask {
        private final Map<Integer, Long> next = new LinkedHashMap<>();
        private long rows;
        private int batch;
        private int topics;
        private int pauseMs;

        @Override
        public void start(Map<String, String> values) {
            config = values;
            rows = Long.parseLong(values.get("rows"));
            batch = Integer.parseInt(values.get("batch"));
            topics = Integer.parseInt(values.get("count"));
            pauseMs = Integer.parseInt(values.getOrDefault("pause", "0"));
            int task = Integer.parseInt(values.get("task"));
            int tasks = Integer.parseInt(values.get("tasks"));
            for (int file = 0; file < Integer.parseInt(values.get("files")); file++) {
                if (file % tasks == task) {
                    Map<String, Object> offset = context.offsetStorageReader().offset(Map.of("file", file));
                    next.put(file, offset == null ? 0 : ((Number) offset.get("next")).longValue());
                }
            }
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(pauseMs);
            List<SourceRecord> records = new ArrayList<>();
            boolean hasMore = true;
            while (hasMore && records.size() < batch) {
                hasMore = false;
                for (Map.Entry<Integer, Long> entry : next.entrySet()) {
                    if (entry.getValue() < rows && records.size() < batch) {
                        records.add(made(entry.getKey(), entry.getValue()));
                        entry.setValue(entry.getValue() + 1);
                        hasMore = true;
                    }
                }
            }
            TransactionContext transaction = context.transactionContext();
            if (transaction != null && !records.isEmpty()) {
                transaction.commitTransaction(records.get(records.size() / 2));
                transaction.commitTransaction();
            }
            return records.isEmpty() ? null : records;
        }

        private SourceRecord made(int file, long number) {
            ConnectHeaders headers = new ConnectHeaders();
            if (number % 7 == 6) {
                headers.addString("drop", "");
            }
            return new SourceRecord(
                    Map.of("file", file), Map.of("next", number + 1), config.get("prefix") + file % topics, null,
                    Schema.STRING_SCHEMA, Integer.toString(file), Schema.STRING_SCHEMA, file + ":" + number, null, headers);
        }
    }
}
