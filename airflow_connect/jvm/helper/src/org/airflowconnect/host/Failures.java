package org.airflowconnect.host;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.PrintWriter;
import java.io.StringWriter;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.errors.RetriableException;

/** Exceptions as the parent reads them. */
final class Failures {
    private static final int MOST_STACK_CHARS = 16_000;
    private static final int MOST_CAUSES = 20;

    private Failures() {}

    /** The member {@code error} of a reply. */
    static ObjectNode describe(Throwable error) {
        ObjectNode json = Json.object();
        if (error instanceof PluginFailure failure) {
            describe(json, failure.getCause());
            json.put("kind", kind(failure.getCause())).put("stage", failure.call());
            return json.put("executing", failure.executing());
        }
        if (error instanceof RecordFailure failure) {
            return record(failure, "").put("kind", "data");
        }
        describe(json, error);
        return json.put("kind", error instanceof VersionException ? "version" : "host");
    }

    /**
     * A record that failed.
     *
     * @param where which record, or "" if the parent knows that
     */
    static ObjectNode record(RecordFailure failure, String where) {
        ObjectNode json = Json.object();
        json.put("stage", failure.stage().name()).put("executing", failure.executing());
        describe(json, failure.getCause());
        return where.isEmpty() ? json : json.put("where", where);
    }

    /** Adds class, message, causes and stack trace. */
    static void describe(ObjectNode json, Throwable error) {
        json.put("class", error.getClass().getName());
        json.put("message", error.getMessage());
        ArrayNode chain = json.putArray("chain");
        Throwable cause = error;
        for (int i = 0; cause != null && i < MOST_CAUSES; i++) {
            chain.add(text(cause));
            cause = cause.getCause();
        }
        json.put("stack", stack(error));
    }

    /** {@code class: message}. */
    static String text(Throwable error) {
        String message = error.getMessage();
        return message == null ? error.getClass().getName() : error.getClass().getName() + ": " + message;
    }

    static boolean isRetriable(Throwable error) {
        return error instanceof RetriableException;
    }

    private static String kind(Throwable error) {
        if (isRetriable(error)) {
            return "retriable";
        }
        return error instanceof ConfigException ? "config" : "plugin";
    }

    private static String stack(Throwable error) {
        StringWriter text = new StringWriter();
        error.printStackTrace(new PrintWriter(text, true));
        return text.getBuffer().length() <= MOST_STACK_CHARS ? text.toString() : text.toString().substring(0, MOST_STACK_CHARS);
    }
}
