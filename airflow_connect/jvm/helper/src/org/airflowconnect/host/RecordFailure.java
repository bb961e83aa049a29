package org.airflowconnect.host;

import org.apache.kafka.connect.runtime.errors.Stage;

/** A converter or a transformation failed on a record; whether that fails the run is decided by the parent. */
final class RecordFailure extends Exception {
    private static final long serialVersionUID = 1;

    private final transient Stage stage;
    private final String executing;

    RecordFailure(Stage stage, Class<?> executing, Throwable cause) {
        super(cause);
        this.stage = stage;
        this.executing = executing.getName();
    }

    Stage stage() {
        return stage;
    }

    String executing() {
        return executing;
    }
}
