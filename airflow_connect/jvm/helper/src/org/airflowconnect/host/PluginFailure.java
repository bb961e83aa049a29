package org.airflowconnect.host;

/**
 * What a plugin threw. Calls of plugins are the only places that make it, so everything else that is thrown in this
 * program is a defect of the program.
 */
final class PluginFailure extends Exception {
    private static final long serialVersionUID = 1;

    private final String call;
    private final String executing;

    /**
     * @param call the method that was called
     * @param executing the class of the plugin
     */
    PluginFailure(String call, String executing, Throwable cause) {
        super(cause);
        this.call = call;
        this.executing = executing;
    }

    String call() {
        return call;
    }

    String executing() {
        return executing;
    }
}
