"""What names say about rotation: which file another one may have been before it was rotated, and which is older."""

from __future__ import annotations

import re
from collections.abc import Iterator

from airflow_connect.stores.file_system import FoundFile

_PACKED = r"\.(?:gz|gzip|zst|zstd)"
_EXTENSION = rf"((?!{_PACKED}\Z)\.[A-Za-z]\w*)"
_ROTATED_END = re.compile(rf"[.\-_][0-9][0-9T:_.\-]*(?:{_PACKED})?|{_PACKED}")
_INSIDE = re.compile(rf"[.\-_][0-9][0-9T:_.\-]*{_EXTENSION}(?:{_PACKED})?")
"""A number or date before the extension: app-20261125.log, app.1.log.gz, app.2026-11-25.0.log."""
_NUMBERED = re.compile(rf"[.\-_]?[0-9][0-9T:_.\-]*{_EXTENSION}(?:{_PACKED})?")
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
    return [*_stems(name), *_stems_around(name)]


def is_of_family(name: str, of: str) -> bool:
    """Whether `name` begins and ends as `of` does, as app-old.log, app.1.log.gz and app.log.old do for app.log."""
    base = of.rfind("/") + 1
    stem, dot, extension = of[base:].rpartition(".")
    if name.startswith(of) or not stem:
        return name.startswith(of) and name != of
    return name.startswith(of[:base] + stem) and (unpacked_name(name) or name).endswith(dot + extension) and name != of


def numbered_scheme(name: str, of: str) -> str:
    """The name of a file of the family of `of` with # for a number or date in it, such as app#log; "" without one."""
    base, start = of.rfind("/") + 1, of.rfind(".")
    if start <= base or not is_of_family(name, of):
        return ""
    found = _NUMBERED.fullmatch(name, start)
    return f"{of[:start]}#{found[1]}" if found and found[1] == of[start:] else ""


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


def _stems_around(name: str) -> Iterator[str]:
    base = name.rfind("/") + 1
    for found in re.finditer(r"[.\-_]", name[base:]):
        inside = _INSIDE.fullmatch(name, base + found.start())
        if found.start() and inside:
            yield name[: base + found.start()] + inside[1]


def _stems(name: str) -> Iterator[str]:
    base = name.rfind("/") + 1
    for found in re.finditer(r"[.\-_]", name[base:]):
        stem = name[: base + found.start()]
        if found.start() and is_rotated(name, stem):
            yield stem
