"""Stack traces of failed records: the plugin host sends the text of each trace once for all records of a reply."""

from __future__ import annotations

from typing import Any

LISTS = ("failed", "errant")
"""Members of a reply that describe failures. Each has its texts in a second member, `<name>_traces`."""


def fill_in(result: dict[str, Any]) -> None:
    """Give each failure of a reply its `stack`, as Java prints it, in place of the numbers of its texts."""
    for name in LISTS:
        texts = result.pop(f"{name}_traces", None)
        if texts is None:
            continue
        for entry in result[name]:
            failure = entry[-1] if isinstance(entry, list) else entry
            if "trace" in failure:
                causes = zip(failure["chain"], failure.pop("trace"), strict=True)
                failure["stack"] = "Caused by: ".join(f"{cause}\n{texts[number]}" for cause, number in causes)
