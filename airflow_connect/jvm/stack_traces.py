"""Failed records as the plugin host describes them: their stack traces, and the secrets in their texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

LISTS = ("failed", "errant")
"""Members of a reply that describe failures. Each has its texts in a second member, `<name>_traces`."""


def fill_in(result: dict[str, Any]) -> None:
    """Give each failure of a reply its `stack`, as Java prints it, in place of the numbers of its texts.

    The host sends the text of each trace once for all records of a reply.
    """
    for name in LISTS:
        texts = result.pop(f"{name}_traces", None)
        if texts is None:
            continue
        for failure in _failures(result[name]):
            if "trace" in failure:
                causes = zip(failure["chain"], failure.pop("trace"), strict=True)
                failure["stack"] = "Caused by: ".join(f"{cause}\n{texts[number]}" for cause, number in causes)


def hide(result: dict[str, Any], redact: Callable[[str], str]) -> None:
    """Hide secrets in what plugins say about records: it goes to logs, reports and dead letter queues."""
    retry = result.get("retry")
    if isinstance(retry, dict) and isinstance(retry.get("message"), str):
        retry["message"] = redact(retry["message"])
    for name in LISTS:
        entries = result.get(name)
        for failure in _failures(entries) if isinstance(entries, list) else ():
            for member in ("message", "stack", "where"):
                if isinstance(failure.get(member), str):
                    failure[member] = redact(failure[member])
            if "chain" in failure:
                failure["chain"] = [redact(cause) for cause in failure["chain"]]


def _failures(entries: list[Any]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        yield entry[-1] if isinstance(entry, list) else entry
