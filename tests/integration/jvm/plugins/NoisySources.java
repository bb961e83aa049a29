package plugins;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceRecord;

/** Sources that do what `how` says with the process around them. */
public final class NoisySources {
    private NoisySources() {}

    /** Two polls; then the noise. */
    public static final class Noisy extends BaseSource {
        @Override
        public Class<? extends Task> taskClass() {
            return NoisyTask.class;
        }

        @Override
        public ConfigDef config() {
            return new ConfigDef()
                    .define("password", ConfigDef.Type.PASSWORD, null, ConfigDef.Importance.LOW, "A secret.")
                    .define("quiet", ConfigDef.Type.PASSWORD, null, ConfigDef.Importance.LOW, "A secret, too.")
                    .define("how", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "What.");
        }

        public static final class NoisyTask extends BaseTask {
            @Override
            protected List<SourceRecord> misbehave() throws InterruptedException {
                String how = config.get("how");
                String secret = config.get("password");
                if (polls != 3) {
                    return null;
                }
                switch (how) {
                    case "stdin" -> {
                        try {
                            System.out.println("stdin gave " + System.in.read());
                        } catch (java.io.IOException error) {
                            throw new ConnectException(error);
                        }
                    }
                    case "one line" -> {
                        String part = "x".repeat(1 << 20);
                        for (int i = 0; i < 40; i++) {
                            System.out.print(part);
                        }
                        System.out.println();
                    }
                    case "secrets" -> {
                        System.out.println("PLAIN " + secret + " END");
                        System.out.println("URL jdbc:x://u:" + java.net.URLEncoder.encode(secret, java.nio.charset.StandardCharsets.UTF_8) + "@h END");
                        System.out.println("URLP jdbc:x://u:" + java.net.URLEncoder.encode(secret, java.nio.charset.StandardCharsets.UTF_8).replace("+", "%20") + "@h END");
                        System.out.println("JSON {\"p\":\"" + secret.replace("\\", "\\\\").replace("\"", "\\\"") + "\"} END");
                        System.out.println("QUIET " + config.get("quiet") + " END");
                        System.out.println("MAP " + config + " END");
                        System.out.print("SPLIT " + secret.substring(0, 4));
                        System.out.flush();
                        Thread.sleep(700);
                        System.out.println(secret.substring(4) + " END");
                        System.out.println("PAD " + "y".repeat(65530) + secret + " END");
                        throw new ConnectException("cannot log in with " + secret + " END",
                                new IllegalStateException("nested " + secret + " END"));
                    }
                    case "large" -> {
                        List<SourceRecord> large = new ArrayList<>();
                        for (long i = 0; i < 6; i++) {
                            large.add(new SourceRecord(Map.of("file", "x"), Map.of("position", 20 + i), "numbers",
                                    Schema.STRING_SCHEMA, (char) ('a' + i) + "z".repeat(Integer.parseInt(config.get("size")))));
                        }
                        return large;
                    }
                    case "deletes tmp" -> {
                        java.io.File folder = new java.io.File(System.getProperty("java.io.tmpdir"));
                        System.out.println("TMP " + folder);
                    }
                    case "cwd" -> System.out.println("CWD " + System.getProperty("user.dir") + " ENV " + System.getenv().keySet());
                    case "properties" -> {
                        System.setProperty("user.dir", "/");
                        System.setOut(null);
                        System.setErr(null);
                        java.util.TimeZone.setDefault(java.util.TimeZone.getTimeZone("Asia/Tokyo"));
                        java.util.Locale.setDefault(new java.util.Locale("tr", "TR"));
                    }
                    case "kills parent" -> ProcessHandle.current().parent().ifPresent(p -> System.out.println("PARENT " + p.pid()));
                    case "logical" -> {
                        Schema schema = SchemaBuilder.struct().field("d", Decimal.schema(2))
                                .field("t", Timestamp.SCHEMA).build();
                        Struct value = new Struct(schema).put("d", new java.math.BigDecimal("12.34"))
                                .put("t", new java.util.Date(5));
                        return List.of(new SourceRecord(Map.of("file", "x"), Map.of("position", 20L), "numbers",
                                null, null, schema, value));
                    }
                    default -> throw new IllegalArgumentException(how);
                }
                return null;
            }
        }
    }
}
