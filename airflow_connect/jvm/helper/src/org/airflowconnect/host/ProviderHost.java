package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.LinkedHashSet;
import java.util.Map;
import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.provider.ConfigProvider;

/** Looks up values by a config provider. Messages of its exceptions may have secrets, so only their classes are told. */
final class ProviderHost {
    private ProviderHost() {}

    /** Creates and configures a provider, asks it for the values of some keys, and closes it. */
    static ObjectNode get(Environment environment, JsonNode request) throws PluginFailure {
        String name = request.path("class").asText();
        Map<String, String> settings = Json.config(request.path("config"));
        Calls loading = new Calls(environment.plugins(), environment.plugins().delegatingLoader());
        try {
            Object plugin = loading.call("constructor", name, () -> environment.plugins().newPlugin(name, null));
            Calls calls = environment.callsFor(plugin.getClass());
            try (ConfigProvider provider = (ConfigProvider) plugin) {
                calls.run("configure", name, () -> provider.configure(settings));
                ConfigData found = calls.get("get", name, () -> provider.get(
                        request.path("path").asText(), new LinkedHashSet<>(Json.texts(request.path("keys")))));
                ObjectNode values = Json.object();
                found.data().forEach(values::put);
                return Json.object().set("values", values);
            }
        } catch (PluginFailure failure) {
            return failed(failure.call(), failure.getCause());
        } catch (Exception error) {
            return failed("close", error);
        }
    }

    private static ObjectNode failed(String call, Throwable error) {
        return Json.object()
                .put("failed", call)
                .put("class", error.getClass().getName())
                .put("retriable", Failures.isRetriable(error));
    }
}
