package org.airflowconnect.host;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The stack traces of a reply. Thousands of records of a frame may fail, and mostly at the same place: the text of each
 * trace is sent once, and {@code airflow_connect/jvm/stack_traces.py} puts the texts together again.
 */
final class Traces {
    private final Map<String, Integer> indexes = new LinkedHashMap<>();

    /** Adds class, message and causes of an error, and its trace: indexes, one for each cause, or the whole text. */
    void describe(ObjectNode json, Throwable error) {
        List<Throwable> causes = Failures.causes(error);
        Failures.describe(json, error, causes);
        if (!canBeRebuilt(causes)) {
            json.put("stack", Failures.stack(error));
            return;
        }
        ArrayNode trace = json.putArray("trace");
        StackTraceElement[] enclosing = {};
        for (Throwable cause : causes) {
            StackTraceElement[] frames = cause.getStackTrace();
            trace.add(indexes.computeIfAbsent(text(frames, enclosing), text -> indexes.size()));
            enclosing = frames;
        }
    }

    /** The texts, for the member {@code traces} of the reply. */
    ArrayNode json() {
        ArrayNode texts = Json.array();
        indexes.keySet().forEach(texts::add);
        return texts;
    }

    /** Whether Java would print nothing but the causes, each after its own text. */
    private static boolean canBeRebuilt(List<Throwable> causes) {
        Throwable last = causes.get(causes.size() - 1);
        return last.getCause() == null
                && causes.stream().allMatch(cause -> cause.getSuppressed().length == 0
                        && cause.toString().equals(Failures.text(cause)));
    }

    /** The lines below an exception, as Java prints them: without those that it shares with the one before. */
    private static String text(StackTraceElement[] frames, StackTraceElement[] enclosing) {
        int shared = 0;
        while (shared < Math.min(frames.length, enclosing.length)
                && frames[frames.length - 1 - shared].equals(enclosing[enclosing.length - 1 - shared])) {
            shared++;
        }
        List<String> lines = new ArrayList<>();
        for (int i = 0; i < frames.length - shared; i++) {
            lines.add("\tat " + frames[i] + "\n");
        }
        if (shared > 0) {
            lines.add("\t... " + shared + " more\n");
        }
        return String.join("", lines);
    }
}
