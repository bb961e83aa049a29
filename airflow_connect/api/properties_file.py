"""Configuration files as people have them for Kafka Connect: Java .properties, and JSON for its REST API.

Source of the properties grammar: java.util.Properties.load (Java 17). Errors name file and line, never what
stands there: it may be a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from airflow_connect.api.config_values import coerce_json
from airflow_connect.api.errors import ConfigError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*(?:[=:][ \t\f]*)?", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)


def load_config(path: str | Path) -> dict[str, str | None]:
    """Read a connector or worker configuration.

    Args:
        path: a `.properties` file, or a `.json` file with a flat object or with `{"name": ..., "config":
            {...}}`, which is what Connect's REST API takes and returns. Other file names are judged by their
            content.

    Returns:
        Key to text, in the order of the file; `name` of a JSON envelope is in it. A JSON null stays None.

    Raises:
        ConfigError: the file cannot be read or understood; names file and line.
    """
    file = Path(path)
    try:
        text = decode(file.read_bytes())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"The configuration file {file} cannot be read: {reason}.",
            code="config.file",
            suggestion="Check the path and its permissions.",
        ) from error
    if file.suffix == ".json" or (file.suffix != ".properties" and text.lstrip().startswith("{")):
        return _from_json(text, str(file))
    return dict(parse_properties(text, str(file)))


def decode(content: bytes) -> str:
    """UTF-8, with or without byte order mark; what is not UTF-8 is ISO-8859-1, Java's encoding of old."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("iso-8859-1")


def parse_properties(text: str, source: str = "properties") -> dict[str, str]:
    r"""Keys and values of Java properties text; of a repeated key the last value counts.

    Args:
        text: decoded content.
        source: file name for messages.

    Raises:
        ConfigError: a `\u` is not followed by four hexadecimal digits.
    """
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        match = _KEY.match(line)
        key, value = (match.group(1), line[match.end() :]) if match else (line, "")
        found[_unescape(key, source, number)] = _unescape(value, source, number)
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blanks, continuation joined, each with the number of its first line."""
    pending, first = "", 0
    for number, natural in enumerate(_LINE_END.split(text), 1):
        line = natural.lstrip(_BLANKS)
        if not first:
            if not line or line[0] in "#!":
                continue
            first = number
        pending += line
        if _is_continued(line):
            pending = pending[:-1]
            continue
        yield first, pending
        pending, first = "", 0
    if first:
        yield first, pending


def _is_continued(line: str) -> bool:
    """An odd number of backslashes at the end: the last one is no escaped backslash."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str, source: str, number: int) -> str:
    if "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        escaped = match.group(1)
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        if escaped == "u":
            raise ConfigError(
                f"{source}, line {number}: \\u is not followed by four hexadecimal digits.",
                code="config.file",
                suggestion="Write a backslash as two backslashes.",
            )
        return _ESCAPES.get(escaped, escaped)

    replaced = _ESCAPE.sub(replace, text)
    # Characters beyond U+FFFF are written as two \\u escapes, a surrogate pair.
    return replaced.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _from_json(text: str, source: str) -> dict[str, str | None]:
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        line, why = (error.lineno, error.msg) if isinstance(error, json.JSONDecodeError) else (1, str(error))
        raise ConfigError(f"{source}, line {line}: this is no valid JSON: {why}.", code="config.file") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{source}, line 1: a configuration is a JSON object.", code="config.file")
    config = data.get("config") if isinstance(data.get("config"), dict) else None
    if config is None:
        return _texts(data, text, source)
    found = _texts(config, text, source)
    return {**found, **_name_of(data, found, source)}


def _name_of(envelope: dict[str, Any], config: dict[str, str | None], source: str) -> dict[str, str | None]:
    """`name` beside `config` belongs into it, and may not contradict it (REST API of Connect)."""
    outer = coerce_json("name", envelope.get("name"))
    if outer is None:
        return {}
    inner = config.get("name")
    if inner is not None and inner != outer:
        raise ConfigError(
            f"{source}: Connector name configuration ({inner}) doesn't match connector name ({outer}) beside it.",
            config_path="name",
            suggestion="Keep one of the two names.",
        )
    return {"name": outer}


def _texts(config: dict[str, Any], text: str, source: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name, value in config.items():
        try:
            found[name] = coerce_json(name, value)
        except ConfigError as error:
            place = text.find(json.dumps(name))
            line = text.count("\n", 0, max(0, place)) + 1
            message = f"{source}, line {line}: {error.message}"
            raise ConfigError(message, suggestion=error.suggestion, config_path=name) from error
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
