package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** An answer: a result or an error, and the buffers of a frame, or none. */
record Reply(ObjectNode json, List<Bytes> buffers) {
    static Reply of(JsonNode result) {
        return of(result, List.of());
    }

    static Reply of(JsonNode result, List<Bytes> buffers) {
        ObjectNode json = Json.object();
        json.set("result", result);
        return new Reply(json, buffers);
    }

    static Reply failed(Throwable error) {
        ObjectNode json = Json.object();
        json.set("error", Failures.describe(error));
        return new Reply(json, List.of());
    }
}
