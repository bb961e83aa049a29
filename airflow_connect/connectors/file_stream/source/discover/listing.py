"""Which files exist now: a single one, or all that match paths with wildcards and directories."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from airflow_connect.connectors.file_stream.source.config import FileSourceConfig
from airflow_connect.connectors.file_stream.source.discover.rotation import directory_of, is_of_family, is_rotated
from airflow_connect.errors import ConfigError
from airflow_connect.stores.file_system import FileSystem, FoundFile
from airflow_connect.stores.file_systems import FileSystems, root_of
from airflow_connect.stores.local.file_system import path_of

_WILDCARD = re.compile(r"[*?\[]")
NO_MATCH = "no file matches it"


@dataclass(frozen=True, slots=True)
class Listing:
    """What a run finds.

    Attributes:
        files: by name: those to read and, with `file`, also files with names of rotated predecessors of it.
        beside: with `file`, files whose names begin and end as its name does: some may be rotated predecessors of it,
            others belong to other programs (see `offsets/unproven`).
        aliases: other names of these files, which are links, with the name that is read.
        empty: entries of the configuration that name no file now, with the reason.
        missing_directories: directories of the configuration that do not exist.
        linked_directories: links to directories that were not followed, and lead elsewhere.
        others: entries that match, but are no files, such as pipes; by name what they are.
    """

    files: dict[str, FoundFile] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    empty: dict[str, str] = field(default_factory=dict)
    missing_directories: tuple[str, ...] = ()
    linked_directories: tuple[str, ...] = ()
    others: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, FoundFile] = field(default_factory=dict)


def list_files(config: FileSourceConfig, file_systems: FileSystems, positions: Mapping[str, int]) -> Listing:
    """The files that exist now, each under one name.

    Args:
        config: names them.
        file_systems: where they are.
        positions: what is committed, by name: of two names of a file, the one that is read further is kept.

    Raises:
        AccessError, UnavailableError: a file system cannot be listed.
        ConfigError: the directory of `file` does not exist.
    """
    found: dict[str, FoundFile] = {}
    beside: dict[str, FoundFile] = {}
    empty: dict[str, str] = {}
    missing: list[str] = []
    linked: dict[str, None] = {}
    others: dict[str, str] = {}
    if config.file is not None:
        found, beside = _with_rotated(config.file, config, file_systems)
        others = _rotated_others(config.file, file_systems)
        if config.file not in found and not file_systems.of(config.file).has_directory(directory_of(config.file)):
            raise _no_directory(config.file)
        if config.file not in found:
            empty[config.file] = "no file has this name"
    for pattern in config.files:
        matching = list(_matching(pattern, file_systems, recursive=config.recursive))
        found |= {file.name: file for file in matching if _is_wanted(file.name, config)}
        linked |= dict.fromkeys(_leading_elsewhere(pattern, file_systems))
        others |= _matching_others(pattern, file_systems, config)
        if not matching:
            directory = directory_of(_literal(pattern))
            is_there = file_systems.of(pattern).has_directory(directory)
            missing += [] if is_there else [directory]
            empty[pattern] = _why_empty(pattern) if is_there else f"the directory {directory} does not exist"
    files, aliases = _without_links(found, config, file_systems, positions)
    # A directory that another entry names is read.
    unread = tuple(name for name in linked if f"{name}/" not in config.files)
    return Listing(files, aliases, empty, tuple(missing), unread, others, beside)


def _leading_elsewhere(pattern: str, file_systems: FileSystems) -> list[str]:
    """The links to directories that were found for a pattern, without those into the directory of the pattern."""
    file_system = file_systems.of(pattern)
    names, file_system.linked_directories = file_system.linked_directories, []
    inside = os.path.join(os.path.realpath(path_of(directory_of(_literal(pattern))) or "."), "")
    return [name for name in names if not f"{os.path.realpath(path_of(name))}/".startswith(inside)]


def _matching_others(pattern: str, file_systems: FileSystems, config: FileSourceConfig) -> dict[str, str]:
    """What a pattern selects besides files. Subdirectories are left out by `files.recursive`."""
    file_system = file_systems.of(pattern)
    found, file_system.others = file_system.others, {}
    is_selected = _selects(pattern, recursive=config.recursive)
    _refuse_unreadable(file_system, lambda name: is_selected(name) and _is_wanted(name, config))
    return {
        name: kind
        for name, kind in found.items()
        if is_selected(name) and _is_wanted(name, config) and not (pattern.endswith("/") and kind == "a directory")
    }


def _refuse_unreadable(file_system: FileSystem, is_selected: Callable[[str], bool]) -> None:
    """Fail for a link whose file may be there: it must not pass for one that is missing."""
    found, file_system.unreadable_links = file_system.unreadable_links, {}
    for name, error in found.items():
        if is_selected(name):
            raise error


def _why_empty(pattern: str) -> str:
    return NO_MATCH if _literal(pattern) != pattern or pattern.endswith("/") else "no file has this name"


def _no_directory(name: str) -> ConfigError:
    return ConfigError(
        f"{name} cannot be read: the directory {directory_of(name)} does not exist.",
        code="file.no_directory",
        config_path="file",
        suggestion="Correct the path, or create the directory; a file that does not exist yet is waited for.",
    )


def _literal(pattern: str) -> str:
    """The part of a pattern before its first wildcard."""
    wildcard = _WILDCARD.search(pattern, len(root_of(pattern)))
    return pattern[: wildcard.start()] if wildcard else pattern


def _without_links(
    found: Mapping[str, FoundFile], config: FileSourceConfig, file_systems: FileSystems, positions: Mapping[str, int]
) -> tuple[dict[str, FoundFile], dict[str, str]]:
    """The files under one name each, and their other names: symbolic links, hard links, other spellings."""
    groups: dict[str, list[str]] = {}
    for file in found.values():
        if file.identity and not file_systems.of(file.name).identity_is_content:
            groups.setdefault(file.identity, []).append(file.name)
    aliases: dict[str, str] = {}
    for names in groups.values():
        if len(names) == 1:
            continue
        # Equal inodes of two devices are two files.
        places = {name: file_systems.of(name).place(name) for name in names}
        kept: dict[str, str] = {}
        for name in sorted(names, key=lambda n: (n != config.file, -positions.get(n, -1), places[n][1], n)):
            first = kept.setdefault(places[name][0], name)
            if first != name:
                aliases[name] = first
    return {name: file for name, file in found.items() if name not in aliases}, aliases


def _is_wanted(name: str, config: FileSourceConfig) -> bool:
    if config.regex is not None and not config.regex.fullmatch(name):
        return False
    return config.exclude is None or not config.exclude.search(name)


def _with_rotated(
    name: str, config: FileSourceConfig, file_systems: FileSystems
) -> tuple[dict[str, FoundFile], dict[str, FoundFile]]:
    file_system = file_systems.of(name)
    own = _named(name, file_system)
    found, besides = {name: own} if own else {}, {}
    if not file_system.identity_is_content:
        for file in file_system.walk(directory_of(name), recursive=False):
            spelled = _spelled(path_of(file.name), name)
            if not spelled:
                continue
            base = path_of(file.name)[len(path_of(directory_of(name))) :]
            if is_rotated(spelled, name) or (config.rotated is not None and config.rotated.fullmatch(base)):
                found[spelled] = replace(file, name=spelled)
            elif config.rotated is None:
                besides[spelled] = replace(file, name=spelled)
    return found, besides


def _spelled(path: str, name: str) -> str:
    """The name of a file of the family of `name`, which may be a URL with escapes of its own; "" for other files."""
    if not is_of_family(path, path_of(name)):
        return ""
    end = os.path.splitext(path_of(name))[1]
    stem = path_of(name).removesuffix(end)
    return (
        name + path.removeprefix(path_of(name))
        if path.startswith(path_of(name))
        else (name.removesuffix(end) + path.removeprefix(stem))
    )


def _rotated_others(name: str, file_systems: FileSystems) -> dict[str, str]:
    """What has the name of a rotated file, but is none.

    Raises:
        AccessError, UnavailableError: it is a link to a file that may not be described.
    """
    file_system = file_systems.of(name)
    found, file_system.others = file_system.others, {}
    _refuse_unreadable(file_system, lambda other: is_rotated(path_of(other), path_of(name)))
    return {other: kind for other, kind in found.items() if is_rotated(path_of(other), path_of(name))}


def _named(name: str, file_system: FileSystem) -> FoundFile | None:
    """The file that the configuration names; an empty pipe or directory must not pass for an empty file."""
    file, path = file_system.find(name), path_of(name)
    if file is None or root_of(name) or os.path.isfile(path) or not os.path.exists(path):
        return file
    is_directory = os.path.isdir(path)
    kind = "a directory" if is_directory else "a pipe, a socket or a device"
    raise ConfigError(
        f"{name} cannot be read: it is {kind}, not a file.",
        code="file.not_a_file",
        config_path="file",
        suggestion=f"Set files={name}/ to read the files in it."
        if is_directory
        else "To read a pipe, leave file and files out, and connect it with the standard input of airflow-connect.",
    )


def _matching(pattern: str, file_systems: FileSystems, *, recursive: bool) -> Iterator[FoundFile]:
    file_system, literal = file_systems.of(pattern), _literal(pattern)
    if literal == pattern:
        if pattern.endswith("/"):
            yield from file_system.walk(pattern, recursive=recursive)
        elif (file := _named(pattern, file_system)) is not None:
            yield file
        return
    rest, is_selected = _rest(pattern, recursive=recursive), _selects(pattern, recursive=recursive)
    for file in file_system.walk(directory_of(literal), recursive="/" in rest or "**" in rest):
        if is_selected(file.name):
            yield file


def _rest(pattern: str, *, recursive: bool) -> str:
    """The part of a pattern after the directory that is searched."""
    rest = path_of(pattern)[len(path_of(directory_of(_literal(pattern)))) :]
    return rest + ("**" if recursive else "*") if pattern.endswith("/") else rest


def _selects(pattern: str, *, recursive: bool) -> Callable[[str], bool]:
    """Whether a pattern selects a name below the directory that is searched."""
    expression = _glob(_rest(pattern, recursive=recursive))
    start = len(path_of(directory_of(_literal(pattern))))
    return lambda name: expression.fullmatch(path_of(name), start) is not None


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
