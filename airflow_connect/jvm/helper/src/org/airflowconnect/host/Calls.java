package org.airflowconnect.host;

import java.util.concurrent.Callable;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.runtime.isolation.LoaderSwap;
import org.apache.kafka.connect.runtime.isolation.Plugins;

/** Calls a plugin: its class loader is that of the thread meanwhile, and what it throws becomes a PluginFailure. */
final class Calls {
    /** A call without a result. */
    interface Action {
        void run() throws Exception;
    }

    private final Plugins plugins;
    private final ClassLoader loader;

    Calls(Plugins plugins, ClassLoader loader) {
        this.plugins = plugins;
        this.loader = loader;
    }

    ClassLoader loader() {
        return loader;
    }

    /**
     * @param method what is called, for messages
     * @param plugin the class that is called
     */
    @SuppressWarnings("try") // The swap is there to be closed.
    <T> T call(String method, String plugin, Callable<T> call) throws PluginFailure {
        try (LoaderSwap swap = plugins.withClassLoader(loader)) {
            return call.call();
        } catch (PluginFailure failure) {
            throw failure;
        } catch (Throwable error) { // Also errors of linking, of asserting, of a stack that is full.
            throw new PluginFailure(method, plugin, error);
        }
    }

    /** The same for a call whose result must not be null. */
    <T> T get(String method, String plugin, Callable<T> call) throws PluginFailure {
        T result = call(method, plugin, call);
        if (result == null) {
            throw new PluginFailure(method, plugin, new ConnectException(method + "() must not return null."));
        }
        return result;
    }

    void run(String method, String plugin, Action action) throws PluginFailure {
        call(method, plugin, () -> {
            action.run();
            return null;
        });
    }
}
