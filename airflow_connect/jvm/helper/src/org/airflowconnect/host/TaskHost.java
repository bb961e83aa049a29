package org.airflowconnect.host;

import java.util.List;

/** A started task. */
interface TaskHost {
    int MOST_WARNINGS = 20;

    /**
     * Stops the task; what goes wrong in that does not change what was copied, so it is returned as text.
     *
     * @param callMs how long each call of the plugin may take
     */
    List<String> close(long callMs);
}
