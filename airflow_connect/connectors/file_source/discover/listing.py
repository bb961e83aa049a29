"""Which files exist now: a single one, or all that match paths with wildcards and directories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from airflow_connect.connectors.file_source.config import FileSourceConfig
from airflow_connect.stores.file_system import FoundFile
from airflow_connect.stores.file_systems import FileSystems, root_of

_WILDCARD = re.compile(r"[*?\[]")
_ROTATED_END = re.compile(r"[.\-_][0-9][0-9T:_.\-]*(?:\.(?:gz|gzip|zst|zstd))?|\.(?:gz|gzip|zst|zstd)")


def list_files(config: FileSourceConfig, file_systems: FileSystems) -> dict[str, FoundFile]:
    """Files by name: those to read and, with `file`, also files that may be rotated predecessors of it.

    Raises:
        AccessError, UnavailableError: a file system cannot be listed.
    """
    if config.file is not None:
        return _with_rotated(config.file, file_systems)
    found: dict[str, FoundFile] = {}
    for pattern in config.files:
        for file in _matching(pattern, file_systems, recursive=config.recursive):
            if _is_wanted(file.name, config):
                found[file.name] = file
    return found


def _is_wanted(name: str, config: FileSourceConfig) -> bool:
    if config.regex is not None and not config.regex.fullmatch(name):
        return False
    return config.exclude is None or not config.exclude.search(name)


def _with_rotated(name: str, file_systems: FileSystems) -> dict[str, FoundFile]:
    file_system = file_systems.of(name)
    own = file_system.find(name)
    found = {name: own} if own else {}
    if not file_system.identity_is_content:
        found |= {
            file.name: file
            for file in file_system.walk(directory_of(name), recursive=False)
            if is_rotated(file.name, name)
        }
    return found


def directory_of(name: str) -> str:
    """The directory of a file, with a trailing slash; "" for a bare name."""
    return name[: name.rfind("/") + 1]


def is_rotated(name: str, of: str) -> bool:
    """Whether `name` looks like a rotated version of the file `of`: app.log.1, app.log-20260101.gz."""
    return name.startswith(of) and _ROTATED_END.fullmatch(name, len(of)) is not None


def family_of(name: str) -> str:
    """The name without the suffixes that rotation adds."""
    for found in re.finditer(r"[.\-_]", name[name.rfind("/") + 1 :]):
        stem = name[: name.rfind("/") + 1 + found.start()]
        if not stem.endswith("/") and stem and is_rotated(name, stem):
            return stem
    return name


def _matching(pattern: str, file_systems: FileSystems, *, recursive: bool) -> Iterator[FoundFile]:
    file_system, wildcard = file_systems.of(pattern), _WILDCARD.search(pattern, len(root_of(pattern)))
    if wildcard is None:
        if pattern.endswith("/"):
            yield from file_system.walk(pattern, recursive=recursive)
        elif (file := file_system.find(pattern)) is not None:
            yield file
        return
    directory = directory_of(pattern[: wildcard.start()])
    rest = pattern[len(directory) :]
    if pattern.endswith("/"):
        rest += "**" if recursive else "*"
    expression = _glob(rest)
    for file in file_system.walk(directory, recursive="/" in rest or "**" in rest):
        if expression.fullmatch(file.name, len(directory)):
            yield file


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    """A pattern with wildcards as a regular expression; `**/` is any number of directories."""
    parts, position = [], 0
    for found in re.finditer(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]", pattern):
        parts.append(re.escape(pattern[position : found.start()]))
        position = found.end()
        token = found[0]
        if token.startswith("["):
            parts.append("[^/" + _in_set(token[2:-1]) + "]" if token[1] == "!" else f"[{_in_set(token[1:-1])}]")
        else:
            parts.append({"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}[token])
    return re.compile("".join((*parts, re.escape(pattern[position:]))), re.DOTALL)


def _in_set(text: str) -> str:
    return re.sub(r"([\\\[\]^&~|])", r"\\\1", text)
