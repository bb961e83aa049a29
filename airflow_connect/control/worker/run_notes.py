"""What runs say beside their outcome: offsets that are left out, records that are dropped, plans that were changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any


class RunNotes:
    """Writes the warnings and notes of runs to a worker's log. Threads may share it, one for each connector."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """`tell`: writes a line."""
        self._tell = tell
        self._of_last_run: dict[str, frozenset[str]] = {}

    def tell(self, name: str, found: Iterable[str], hide: Callable[[str], str], *, has_copied: bool) -> None:
        """Write what a run has said, each text once.

        A run that copied nothing, as most do, leaves out what the last run has said in the same words.

        Args:
            name: of the connector.
            found: its texts.
            hide: removes the secrets of a text.
            has_copied: whether the run copied something.
        """
        texts = dict.fromkeys(found)
        before = frozenset() if has_copied else self._of_last_run.get(name, frozenset())
        self._of_last_run[name] = frozenset(texts)
        for text in texts:
            if text not in before:
                self._tell(hide(f"{name}: {text}"))


class Heard:
    """An observer of a run that keeps its warnings and the notes of its plan."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.texts: list[str] = []

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Receive one event of `runtime.spec.Observer`."""
        if event["event"] == "warning":
            self.texts.append(str(event["message"]))
        elif event["event"] == "plan":
            self.texts.extend(str(note) for note in event["notes"])
