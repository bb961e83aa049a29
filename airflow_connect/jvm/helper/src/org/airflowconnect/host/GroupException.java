package org.airflowconnect.host;

/** The consumer group of a sink is not as a run needs it; the message is a sentence for people. */
final class GroupException extends Exception {
    private static final long serialVersionUID = 1;

    GroupException(String message) {
        super(message);
    }

    GroupException(String message, Throwable cause) {
        super(message, cause);
    }
}
