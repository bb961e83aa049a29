package org.airflowconnect.host;

import java.util.List;

/** Calls of a plugin while it is being stopped: each has a limited time, and its failure is a warning. */
final class Stopping {
    private final long callMs;
    private final Calls calls;
    private final String plugin;
    private final List<String> warnings;

    /** @param callMs how long each call may take */
    Stopping(long callMs, Calls calls, String plugin, List<String> warnings) {
        this.callMs = callMs;
        this.calls = calls;
        this.plugin = plugin;
        this.warnings = warnings;
    }

    /** A call that does not return is left behind in its thread: this JVM ends soon, by halt. */
    void run(String method, Calls.Action action) {
        Thread thread = new Thread(() -> {
            try {
                calls.run(method, plugin, action);
            } catch (PluginFailure failure) {
                warn(method + " has failed: " + Failures.text(failure.getCause()));
            }
        }, "connect-stop");
        thread.setDaemon(true);
        thread.start();
        try {
            thread.join(callMs);
            if (thread.isAlive()) {
                warn(method + " did not return within " + callMs / 1000.0 + " s");
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            warn(method + " was not waited for");
        }
    }

    void warn(String what) {
        synchronized (warnings) {
            warnings.add(plugin + ": " + what);
        }
    }
}
