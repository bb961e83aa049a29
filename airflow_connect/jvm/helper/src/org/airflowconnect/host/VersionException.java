package org.airflowconnect.host;

/** The Kafka Connect runtime on the class path is older than the plugin API that this program implements. */
final class VersionException extends Exception {
    private static final long serialVersionUID = 1;

    VersionException(String found) {
        super("The Kafka Connect runtime is version " + found + "; plugins need 4.1 or newer.");
    }
}
