package io.confluent.connect.s3;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.text.SimpleDateFormat;
import java.util.Base64;
import java.util.Collection;
import java.util.Date;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Writes an object for each `flush.size` records of a partition, and commits what is in objects only. */
public class S3SinkTask extends SinkTask {
    private Map config;
    private int flushSize;
    private final Map open = new HashMap();
    private final Map written = new HashMap();

    private static class File {
        final ByteArrayOutputStream content = new ByteArrayOutputStream();
        long start;
        int records;
    }

    public String version() {
        return "stand-in";
    }

    public void start(Map<String, String> properties) {
        config = properties;
        flushSize = Integer.parseInt(key("flush.size"));
    }

    public void put(Collection<SinkRecord> records) {
        try {
            for (Iterator all = records.iterator(); all.hasNext();) {
                SinkRecord record = (SinkRecord) all.next();
                TopicPartition place = new TopicPartition(record.topic(), record.kafkaPartition().intValue());
                File file = (File) open.get(place);
                if (file == null) {
                    file = new File();
                    file.start = record.kafkaOffset();
                    open.put(place, file);
                }
                file.content.write((byte[]) record.value());
                file.content.write('\n');
                file.records++;
                if (file.records == flushSize) {
                    upload(name(place, file.start), file.content.toByteArray());
                    open.remove(place);
                    written.put(place, new OffsetAndMetadata(record.kafkaOffset() + 1L));
                }
            }
        } catch (Exception error) {
            throw new ConnectException(error);
        }
    }

    public Map<TopicPartition, OffsetAndMetadata> preCommit(Map<TopicPartition, OffsetAndMetadata> received) {
        Map<TopicPartition, OffsetAndMetadata> done = new HashMap<TopicPartition, OffsetAndMetadata>(written);
        written.clear();
        return done;
    }

    public void close(Collection<TopicPartition> places) {
        open.clear();
    }

    public void stop() {
    }

    private String name(TopicPartition place, long start) {
        String number = String.format("%010d", new Object[] {Long.valueOf(start)});
        return "topics/" + place.topic() + "/partition=" + place.partition() + "/" + place.topic() + "+"
            + place.partition() + "+" + number + ".bin";
    }

    private void upload(String name, byte[] content) throws Exception {
        String path = "/" + key("s3.bucket.name") + "/" + name.replace("=", "%3D").replace("+", "%2B");
        SimpleDateFormat format = new SimpleDateFormat("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.US);
        format.setTimeZone(TimeZone.getTimeZone("GMT"));
        String now = format.format(new Date());
        String signed = "PUT\n\napplication/octet-stream\n" + now + "\n" + path;
        Mac mac = Mac.getInstance("HmacSHA1");
        mac.init(new SecretKeySpec(key("aws.secret.access.key").getBytes(StandardCharsets.UTF_8), "HmacSHA1"));
        String signature = Base64.getEncoder().encodeToString(mac.doFinal(signed.getBytes(StandardCharsets.UTF_8)));
        HttpURLConnection request = (HttpURLConnection) new URL(key("store.url") + path).openConnection();
        request.setRequestMethod("PUT");
        request.setDoOutput(true);
        request.setRequestProperty("Content-Type", "application/octet-stream");
        request.setRequestProperty("Date", now);
        request.setRequestProperty("Authorization", "AWS " + key("aws.access.key.id") + ":" + signature);
        OutputStream body = request.getOutputStream();
        body.write(content);
        body.close();
        if (request.getResponseCode() != 200) {
            throw new IOException("The store answered " + request.getResponseCode() + " for " + name);
        }
    }

    private String key(String name) {
        return (String) config.get(name);
    }
}
