"""What names say about rotation: which file another one may have been before it was rotated, and which is older."""

from __future__ import annotations

import re
from collections.abc import Iterator

from airflow_connect.stores.file_system import FoundFile

_PACKED = r"\.(?:gz|gzip|zst|zstd)"
_EXTENSION = rf"((?!{_PACKED}\Z)\.[A-Za-z]\w*)"
_ROTATED_END = re.compile(rf"[.\-_][0-9][0-9T:_.\-]*(?:{_PACKED})?|{_PACKED}")
_INSIDE = re.compile(rf"(.*[^/])[.\-_][0-9][0-9T:_.\-]*{_EXTENSION}(?:{_PACKED})?", re.DOTALL)
"""A number or date before the extension: app-20261125.log, app.1.log.gz."""
_COUNTED = re.compile(rf"(.*[^/])\.([0-9]{{1,4}}){_EXTENSION}?(?:{_PACKED})?", re.DOTALL)
"""A counter, not a date: app.log.1, app.log.2.gz, app.1.log."""


def directory_of(name: str) -> str:
    """The directory of a file, with a trailing slash; "" for a bare name."""
    return name[: name.rfind("/") + 1]


def is_rotated(name: str, of: str) -> bool:
    """Whether `name` looks like a rotated version of the file `of`: app.log.1, app.log-20260101.gz."""
    return name.startswith(of) and _ROTATED_END.fullmatch(name, len(of)) is not None


def family_of(name: str) -> str:
    """The name without the suffixes that rotation adds."""
    return next(_stems(name), name)


def earlier_names(name: str) -> list[str]:
    """The names that a file may have had before rotation named it `name`.

    `app.log` and `app.log.1` for `app.log.1.gz`; `app.log` for `app-20261125.log`. That `app.log.1` becomes
    `app.log.2` is told by `counted`.
    """
    found = list(_stems(name))
    inside = _INSIDE.fullmatch(name)
    return [*found, inside[1] + inside[2]] if inside else found


def unpacked_name(name: str) -> str:
    """The name without the extension of a compressed file; "" if it has none."""
    found = re.fullmatch(rf"(.*[^/]){_PACKED}", name, re.DOTALL)
    return found[1] if found else ""


def counted(name: str) -> tuple[str, int] | None:
    """The name of the file that is being written, and the number of `name` among its rotated files; None: no number."""
    found = _COUNTED.fullmatch(name)
    return (found[1] + (found[3] or ""), int(found[2])) if found else None


def by_age(file: FoundFile) -> tuple[int, int, str]:
    """Sorts rotated files, the oldest first: by time, then by number (the highest is the oldest) or date."""
    number = counted(file.name)
    return file.modified_ms, -number[1] if number else 0, file.name


def _stems(name: str) -> Iterator[str]:
    base = name.rfind("/") + 1
    for found in re.finditer(r"[.\-_]", name[base:]):
        stem = name[: base + found.start()]
        if found.start() and is_rotated(name, stem):
            yield stem
