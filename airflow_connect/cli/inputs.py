"""Creates the specs of runs from the files on a command line."""

from __future__ import annotations

import os
from argparse import SUPPRESS, Action, ArgumentParser, ArgumentTypeError
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from airflow_connect.api.config.references import references_in
from airflow_connect.api.config.values import is_secret_name
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.runtime.config_files import read_connector_file
from airflow_connect.runtime.spec import RunSpec


def add_files(parser: ArgumentParser) -> None:
    """The arguments of `standalone` and `plan`, which are those of Kafka Connect's connect-standalone."""
    complete_files(parser.add_argument("worker", help="worker configuration, .properties or JSON"))
    complete_files(
        parser.add_argument(
            "connectors", nargs="+", metavar="connector", help="connector configuration, .properties or JSON"
        )
    )
    add_settings(parser)


def common_flags() -> ArgumentParser:
    """The flags of every command, for its actions; their defaults are those of the command itself."""
    common = ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", default=SUPPRESS, help="print the result as one JSON object")
    common.add_argument(
        "-v", "--verbose", action="store_true", default=SUPPRESS, help="show the logs of Spark, Kafka and Airflow"
    )
    return common


def sentence(text: str) -> str:
    """A help text as a sentence; capitals inside stay."""
    return f"{text[:1].upper()}{text[1:]}."


_THIS_TIME = "set a key of {} this time only, such as run.max.records=1000; can be repeated"


def add_settings(parser: ArgumentParser, dest: str = "settings", what: str = "every connector", text: str = "") -> None:
    """`--set KEY=VALUE`, as pairs in `dest`; `text`: help, if it is not about `what` this time only."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        dest=dest,
        help=text or _THIS_TIME.format(what),
    )


def positive(text: str) -> int:
    """A positive integer.

    Raises:
        ArgumentTypeError: it is none.
    """
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise ArgumentTypeError(f"{text!r} is not a positive integer")
    return number


def complete_files(action: Action) -> None:
    """Let shells complete the argument with the names of configuration files and directories."""
    action.completer = configuration_files  # type: ignore[attr-defined] # as argcomplete wants it


def configuration_files(prefix: str, **_: object) -> list[str]:
    """Names of configuration files and directories that begin with `prefix`, for shells."""
    from argcomplete.completers import FilesCompleter

    return list(FilesCompleter(("properties", "json"))(prefix))


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    is_reference = [reference.text for reference in references_in(value)] == [value]
    if is_secret_name(key) and not is_reference:  # The value is not shown either: this message goes to a terminal.
        raise ArgumentTypeError(f"{key} is a secret, but all users of this machine can read command lines; use a file")
    return key, value


def spec_of(path: str, worker: Mapping[str, Any], command: str, settings: Iterable[tuple[str, str]] = ()) -> RunSpec:
    """The run that a connector file and a worker configuration describe; resolves references to config providers.

    Args:
        path: connector file.
        worker: worker configuration.
        command: name of the command, for the history of runs.
        settings: keys of the connector that take precedence over its file.

    Raises:
        ConfigError: the file is missing or cannot be read, or the target of a reference is missing.
        UnavailableError: a config provider's server did not answer.
    """
    connector = {**read_connector_file(path), **dict(settings)}
    return RunSpec(
        connector=connector,
        worker=worker,
        references=resolve_references(connector, worker).values,
        origin={"command": command, "user": os.environ.get("USER") or str(os.getuid()), "file": Path(path).name},
    )


def spark_settings(worker: Mapping[str, Any]) -> dict[str, str]:
    """`spark.*` of a worker, references to config providers resolved.

    Raises:
        ConfigError: the target of one of the worker's references is missing.
        UnavailableError: a config provider's server did not answer.
    """
    resolved = resolve_references({}, worker).resolve(worker)
    return {key: str(value) for key, value in resolved.items() if key.startswith("spark.")}


def label_of(path: str, connector: Mapping[str, Any] | None = None) -> str:
    """The name of a connector in messages: its name, or its file."""
    return str((connector or {}).get("name") or Path(path).name)
