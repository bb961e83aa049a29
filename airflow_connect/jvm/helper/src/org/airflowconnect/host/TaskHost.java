package org.airflowconnect.host;

import java.util.List;

/** A started task. */
interface TaskHost {
    int MOST_WARNINGS = 20;

    /** Stops the task; what goes wrong in that does not change what was copied, so it is returned as text. */
    List<String> close();
}
