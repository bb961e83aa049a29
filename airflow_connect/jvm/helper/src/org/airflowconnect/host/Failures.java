package org.airflowconnect.host;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.errors.RetriableException;

/** Exceptions as the parent reads them. */
final class Failures {
    private static final int MOST_CHARS = 16_000;
    private static final int MOST_CAUSES = 20;

    private Failures() {}

    /** The member {@code error} of a reply. */
    static ObjectNode describe(Throwable error) {
        ObjectNode json = Json.object();
        Throwable thrown = error;
        if (error instanceof PluginFailure failure) {
            thrown = failure.getCause();
            json.put("kind", kind(thrown)).put("stage", failure.call()).put("executing", failure.executing());
        } else if (error instanceof RecordFailure failure) {
            thrown = failure.getCause();
            json.put("kind", "data").put("stage", failure.stage().name()).put("executing", failure.executing());
        } else if (error instanceof GroupException) {
            json.put("kind", "group");
        } else {
            json.put("kind", error instanceof VersionException ? "version" : "host");
        }
        describe(json, thrown, causes(thrown));
        return json.put("stack", stack(thrown));
    }

    /**
     * A record that failed.
     *
     * @param where which record, or "" if the parent knows that
     * @param traces those of the reply
     */
    static ObjectNode record(RecordFailure failure, String where, Traces traces) {
        ObjectNode json = Json.object();
        json.put("stage", failure.stage().name()).put("executing", failure.executing());
        traces.describe(json, failure.getCause());
        return where.isEmpty() ? json : json.put("where", where);
    }

    /** Adds class, message and causes. */
    static void describe(ObjectNode json, Throwable error, List<Throwable> causes) {
        json.put("class", error.getClass().getName());
        json.put("message", error.getMessage() == null ? null : shortened(error.getMessage()));
        ArrayNode chain = json.putArray("chain");
        causes.forEach(cause -> chain.add(shortened(text(cause))));
    }

    /** An error and its causes; they may go in a circle. */
    static List<Throwable> causes(Throwable error) {
        List<Throwable> causes = new ArrayList<>();
        for (Throwable cause = error; cause != null && causes.size() < MOST_CAUSES; cause = cause.getCause()) {
            causes.add(cause);
        }
        return causes;
    }

    /** {@code class: message}. */
    static String text(Throwable error) {
        String message = error.getMessage();
        return message == null ? error.getClass().getName() : error.getClass().getName() + ": " + message;
    }

    static boolean isRetriable(Throwable error) {
        return error instanceof RetriableException;
    }

    /** What Java prints, up to a limit. */
    static String stack(Throwable error) {
        StringWriter text = new StringWriter();
        error.printStackTrace(new PrintWriter(text, true));
        return shortened(text.toString());
    }

    /** Some plugins have whole records in their messages. */
    private static String shortened(String text) {
        if (text.length() <= MOST_CHARS) {
            return text;
        }
        return text.substring(0, MOST_CHARS) + " (" + (text.length() - MOST_CHARS) + " more characters)";
    }

    private static String kind(Throwable error) {
        if (isRetriable(error)) {
            return "retriable";
        }
        return error instanceof ConfigException ? "config" : "plugin";
    }
}
