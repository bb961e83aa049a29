package plugins;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.provider.ConfigProvider;
import org.apache.kafka.connect.errors.RetriableException;

/** A store of secrets: each is `<path>-<key>-<setting token>`. It has none that is called `missing`, and prints them. */
public final class Vault implements ConfigProvider {
    private Map<String, ?> settings = Map.of();

    @Override
    public void configure(Map<String, ?> values) {
        if (!values.containsKey("token")) {
            throw new IllegalArgumentException("no token among " + values);
        }
        settings = values;
    }

    @Override
    public ConfigData get(String path) {
        return get(path, Set.of());
    }

    @Override
    public ConfigData get(String path, Set<String> keys) {
        if (path.equals("broken")) {
            throw new IllegalStateException("secret of " + settings.get("token"));
        }
        if (path.equals("away")) {
            throw new RetriableException("secret of " + settings.get("token"));
        }
        Map<String, String> found = new HashMap<>();
        for (String key : keys) {
            if (!key.equals("missing")) {
                found.put(key, path + "-" + key + "-" + settings.get("token"));
            }
        }
        System.out.println("found " + found);
        return new ConfigData(found);
    }

    @Override
    public void close() {}
}
