"""Parts of a source's input that a run leaves out: the others are copied, then the run fails and names all of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from airflow_connect.counting import plural
from airflow_connect.documents.source_run import LeftOutPart
from airflow_connect.errors import ConnectError, DataError

log = logging.getLogger(__name__)


class LeftOut:
    """What one task, or the connector, has left out."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._parts: dict[str, LeftOutPart] = {}

    def add(self, name: str, error: ConnectError) -> None:
        """Log a part and keep it; its first error counts."""
        if name not in self._parts:
            self._parts[name] = LeftOutPart(name, str(error))
            log.error("%s", note_of(self._parts[name]))

    @property
    def parts(self) -> tuple[LeftOutPart, ...]:
        """All of them, in order."""
        return tuple(self._parts.values())


def note_of(part: LeftOutPart) -> str:
    """The sentence for the report."""
    return f"{part.name[0].upper()}{part.name[1:]} was left out of this run, or its rest was: {part.reason}"


def without_doubles(parts: Iterable[LeftOutPart]) -> list[LeftOutPart]:
    """Each part once: several tasks may read one."""
    return list({part.name: part for part in parts}.values())


def error_of(parts: Sequence[LeftOutPart]) -> DataError:
    """The error with which the run ends, after everything else is committed."""
    names = ", ".join(part.name for part in parts)
    count = plural(len(parts), "part")
    return DataError(
        f"{count} of the source could not be copied and {'was' if len(parts) == 1 else 'were'} left out: {names}."
        f" Everything else is committed. The reason of the first: {parts[0].reason}",
        code="source.left_out",
        suggestion="Nothing is lost: correct the cause, and the next run copies what was left out from where it"
        " stopped. Or take it out of the configuration. The notes of the run have the reason of each.",
    )
