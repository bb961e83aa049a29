"""Configuration files as Kafka Connect reads them: Java properties, and JSON in two shapes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_connect.errors import ConfigError
from airflow_connect.java.properties_file import decode, property_lines

_SECTION = re.compile(r"\[[A-Za-z][\w.: -]*\]")
_BESIDE_CONFIG = {"name", "config", "initial_state", "tasks", "type"}
"""What Kafka Connect's REST API takes next to a configuration, or answers (`GET /connectors/<name>`)."""


def read_connector_file(path: str | Path) -> dict[str, Any]:
    """A connector's configuration from a `.properties` or JSON file.

    JSON may be the flat configuration or `{"name": ..., "config": {...}}`, the body of `POST /connectors`
    (KIP-1074 gave both to standalone mode).

    Raises:
        ConfigError: the file is missing or cannot be understood; the message says where in it.
    """
    return connector_of(_read(Path(path)), str(path))


def connector_of(content: str, where: str) -> dict[str, Any]:
    """A connector's configuration from the text of a file; see `read_connector_file`."""
    _refuse_other_languages(content, where)
    if not _is_json(content, where):
        return _parse_properties(content, where)
    return unwrap_connector(_parse_json(content, where), where)


def read_worker_file(path: str | Path) -> dict[str, Any]:
    """A worker's configuration from a `.properties` file or a flat JSON object.

    Raises:
        ConfigError: as for `read_connector_file`.
    """
    return worker_of(_read(Path(path)), str(path))


def worker_of(content: str, where: str) -> dict[str, Any]:
    """A worker's configuration from the text of a file; see `read_worker_file`."""
    _refuse_other_languages(content, where)
    return _parse_json(content, where) if _is_json(content, where) else _parse_properties(content, where)


def unwrap_connector(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The flat configuration of `{"name": ..., "config": {...}}`; a flat one is returned unchanged.

    Raises:
        ConfigError: two names that differ, or a `config` that is not an object.
    """
    if "connector.class" in document or "config" not in document:
        return dict(document)
    config, name = document["config"], document.get("name")
    if beside := sorted(document.keys() - _BESIDE_CONFIG):
        raise ConfigError(
            f"{where} has keys next to `config`, where no configuration is read: {', '.join(beside)}.",
            code="config.file_invalid",
            config_path=beside[0],
            suggestion="Move them into `config`, or remove them.",
        )
    if not isinstance(config, Mapping):
        raise ConfigError(f"The member `config` of {where} is not an object.", config_path="config")
    state = document.get("initial_state")
    if str(state or "RUNNING").upper() != "RUNNING":
        raise ConfigError(
            f"{where} has the `initial_state` {state!r} next to `config`, with which no run would begin.",
            code="config.file_invalid",
            config_path="initial_state",
            suggestion="Remove it to run the connector. To register a connector that does not run yet, use"
            " `airflow-connect connectors create --state STOPPED`, or POST the file to /connectors.",
        )
    if name is not None and config.get("name", name) != name:
        raise ConfigError(
            f"{where} has two names: {name!r} next to the configuration and {config['name']!r} inside.",
            config_path="name",
            suggestion="Remove one of them.",
        )
    return dict(config) if name is None else {"name": name, **config}


def _read(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigError(
            f"There is no file {path}.",
            code="config.file_missing",
            suggestion=f"Specify the path of a properties or JSON file; the current folder is {Path.cwd()}.",
        ) from error
    except OSError as error:
        raise ConfigError(f"The file {path} cannot be read: {error.strerror}.", code="config.file_missing") from error
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in raw:
        raise ConfigError(
            f"The file {path} is not UTF-8 text: it has the marks or the zero bytes of UTF-16 or of a binary file.",
            code="config.file_invalid",
            suggestion="Save it as UTF-8. In Windows PowerShell, `>` and Out-File write UTF-16 unless told otherwise.",
        )
    return decode(raw)


def _refuse_other_languages(content: str, where: str) -> None:
    """Name what a file is that begins neither like JSON nor like properties.

    Raises:
        ConfigError: sections of an INI file, or comments of another language in a properties file.
    """
    first = content.strip().partition("\n")[0].strip()
    line = content[: len(content) - len(content.lstrip())].count("\n") + 1
    if _SECTION.fullmatch(first) and "\n" in content.strip():
        raise ConfigError(
            f"{where} begins with a section of an INI file (line {line}), which neither properties nor JSON have.",
            code="config.file_invalid",
            suggestion="Remove the lines with sections, or write one file for each section.",
        )
    has_object = any(text.lstrip().startswith("{") for text in content.splitlines())
    if first.startswith(("//", "/*")) and where.lower().endswith(".properties") and not has_object:
        raise ConfigError(
            f"{where} begins with {first[:2]} (line {line}), which is not a comment in a properties file.",
            code="config.file_invalid",
            suggestion="Begin comments with #.",
        )


def _is_json(content: str, where: str) -> bool:
    """Whether it should be JSON: a file with that name that begins with a comment is not properties."""
    begin = content.lstrip()[:2]
    return begin.startswith(("{", "[")) or begin in ("//", "/*") or (bool(begin) and where.lower().endswith(".json"))


def _parse_properties(content: str, where: str) -> dict[str, Any]:
    found: dict[str, tuple[str, int]] = {}
    for key, value, line in property_lines(content, where):
        if key in found and found[key][0] != value:
            raise _two_values(where, key, f" (lines {found[key][1]} and {line})")
        found[key] = value, line
    return {key: value for key, (value, _) in found.items()}


def _two_values(where: str, key: str, lines: str = "") -> ConfigError:
    """The error for a key with two different values, which are not shown: they may be secrets."""
    return ConfigError(
        f"{where} has the key {key!r} twice{lines}, with different values.",
        code="config.file_invalid",
        config_path=key,
        suggestion="Remove one of them. Kafka Connect uses the last one.",
    )


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _parse_json(content: str, where: str) -> dict[str, Any]:
    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        for key, value in pairs:
            if found[key] != value:
                raise _two_values(where, key)
        return found

    if content.lstrip()[:2] in ("//", "/*"):
        line = content[: len(content) - len(content.lstrip())].count("\n") + 1
        raise ConfigError(
            f"{where} is not JSON: line {line} is a comment, and JSON has no comments.",
            code="config.file_invalid",
            suggestion="Remove the comments, or write the configuration as a .properties file, with # before comments.",
        )
    try:
        document = json.loads(content, object_pairs_hook=members, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{where} is not JSON: {error}.",
            code="config.file_invalid",
            suggestion="Correct it there; JSON requires double quotes, and no comma after the last member.",
        ) from error
    if not isinstance(document, dict):
        raise ConfigError(
            f"{where} contains a JSON {type(document).__name__}, not an object.", code="config.file_invalid"
        )
    return document
