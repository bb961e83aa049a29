package org.airflowconnect.host;

import com.fasterxml.jackson.databind.JsonNode;

/** What the parent asks for: an operation with its arguments, and the bytes of a frame, or none. */
record Request(JsonNode json, byte[] body) {
    String operation() {
        return json.path("op").asText();
    }
}
