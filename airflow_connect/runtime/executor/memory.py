"""Peak memory of a task's process."""

from __future__ import annotations

import re
import resource
from pathlib import Path


def peak_memory_bytes() -> int:
    """Highest resident set size of this process; `ru_maxrss` would include that of the process that forked it."""
    status = Path("/proc/self/status")
    found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE) if status.exists() else None
    return 1024 * (int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
