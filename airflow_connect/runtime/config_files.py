"""Configuration files as Kafka Connect reads them: Java properties, and JSON in two shapes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow_connect.api.errors import ConfigError

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_connector_file(path: str | Path) -> dict[str, Any]:
    """A connector's configuration from a `.properties` or JSON file.

    JSON may be the flat configuration or `{"name": ..., "config": {...}}`, the body of `POST /connectors`
    (KIP-1074 gave both to standalone mode).

    Raises:
        ConfigError: the file is missing or cannot be understood; the message says where in it.
    """
    content = _read(Path(path))
    if not content.lstrip().startswith(("{", "[")):
        return dict(parse_properties(content, str(path)))
    return unwrap_connector(_parse_json(content, str(path)), str(path))


def read_worker_file(path: str | Path) -> dict[str, Any]:
    """A worker's configuration from a `.properties` file or a flat JSON object.

    Raises:
        ConfigError: as for `read_connector_file`.
    """
    content = _read(Path(path))
    if content.lstrip().startswith(("{", "[")):
        return _parse_json(content, str(path))
    return dict(parse_properties(content, str(path)))


def unwrap_connector(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The flat configuration of `{"name": ..., "config": {...}}`; a flat one is returned as it is.

    Raises:
        ConfigError: two names that differ, or a `config` that is not an object.
    """
    if "connector.class" in document or "config" not in document:
        return dict(document)
    config, name = document["config"], document.get("name")
    if not isinstance(config, Mapping):
        raise ConfigError(f"The member `config` of {where} is not an object.", config_path="config")
    if name is not None and config.get("name", name) != name:
        raise ConfigError(
            f"{where} gives two names: {name!r} beside the configuration and {config['name']!r} inside.",
            config_path="name",
            suggestion="Remove one of them.",
        )
    return dict(config) if name is None else {"name": name, **config}


def parse_properties(content: str, where: str = "the properties") -> dict[str, str]:
    r"""Java's `Properties.load`, with its comments, escapes and continued lines.

    Raises:
        ConfigError: a malformed `\uXXXX`.
    """
    found: dict[str, str] = {}
    for number, line in _logical_lines(content):
        key, value = _split(line)
        try:
            found[_unescape(key)] = _unescape(value)
        except ValueError as error:
            raise ConfigError(
                f"Line {number} of {where} has a \\u that is not followed by four hexadecimal digits.",
                code="config.file_invalid",
                suggestion="Write a backslash as \\\\.",
            ) from error
    return found


def _logical_lines(content: str) -> Iterator[tuple[int, str]]:
    """Line number and text of each entry, without comments, with continued lines joined."""
    pending, started = "", 0
    for number, natural in enumerate(_LINE_END.split(content), 1):
        text = natural.lstrip(_BLANKS)
        if not pending and (not text or text[0] in "#!"):
            continue
        started = started if pending else number
        backslashes = len(text) - len(text.rstrip("\\"))
        if backslashes % 2:
            pending += text[:-1]
            # An entry of nothing but a continuation must not look like no entry.
            pending = pending or " "
            continue
        yield started, (pending + text).lstrip(_BLANKS)
        pending = ""
    if pending.strip(_BLANKS):
        yield started, pending.lstrip(_BLANKS)


def _split(line: str) -> tuple[str, str]:
    """Key and value of an entry, still escaped."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape[0] == "u":
            if len(escape) != 5:
                raise ValueError(escape)
            return chr(int(escape[1:], 16))
        return _ESCAPES.get(escape, escape)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", replace, text, flags=re.DOTALL)


def _read(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigError(
            f"There is no file {path}.",
            code="config.file_missing",
            suggestion=f"Give the path of a properties or JSON file; the current folder is {Path.cwd()}.",
        ) from error
    except OSError as error:
        raise ConfigError(f"The file {path} cannot be read: {error.strerror}.", code="config.file_missing") from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        # The encoding of Java's own properties files.
        return raw.decode("latin-1")


def _parse_json(content: str, where: str) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except ValueError as error:
        raise ConfigError(
            f"{where} is not JSON: {error}.",
            code="config.file_invalid",
            suggestion="Correct it there; JSON wants double quotes and no comma after the last member.",
        ) from error
    if not isinstance(document, dict):
        raise ConfigError(f"{where} holds a JSON {type(document).__name__}, not an object.", code="config.file_invalid")
    return document
