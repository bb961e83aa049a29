package org.airflowconnect.host;

/** A column of a frame would get longer than an array can be: one record, or the records of one poll, are too large. */
final class FrameTooLargeException extends RuntimeException {
    private static final long serialVersionUID = 1;

    FrameTooLargeException(long bytes) {
        super("A column of " + bytes + " bytes does not fit into a frame, whose limit is 2 GiB.");
    }
}
