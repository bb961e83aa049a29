"""Configuration of FileStreamSink.

Source: org.apache.kafka.connect.file.FileStreamSinkConnector of Kafka 4.3, whose only key is `file`.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.api.config.plugins import PluginKind, resolve
from airflow_connect.api.config.typed import KeyGroup, TypedConfig
from airflow_connect.api.config.validators import Lambda
from airflow_connect.api.config.values import invalid
from airflow_connect.config.keys import sink as sink_keys
from airflow_connect.errors import ConfigError

CLASS = "airflow_connect.connectors.file_stream.sink.connector:FileStreamSinkConnector"
ROOT, PREFIX = "root", "prefix"
"""Keys of a task's own configuration: the driver determines where to stage, not an executor's working directory."""
NO_TEXT = "values that are no text"
"""What is not written in columns."""
_FILE = KeyGroup("File")
_LONGEST_PLAIN_NAME = 150


def _check_file(name: str, value: object) -> None:
    text = str(value or "")
    if "\0" in text:
        raise invalid(name, value, "A path cannot contain NUL")
    if text and (text.endswith("/") or os.path.basename(text) in ("", ".", "..")):
        raise invalid(name, value, "It is a directory, but must be a file")


class FileSinkKeys(TypedConfig):
    """Every key of the sink."""

    file = _FILE.high.optional_text(
        "file",
        "File to append to. Its directory must exist, and be the same one for the driver and"
        " all executors. A relative path starts at the driver's working directory. Without it, lines go to standard"
        " output, and delivery is at least once.",
        Lambda(_check_file, "path of a file"),
    )

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """After the keys of every sink."""
        definition.include(sink_keys.sink_keys())
        super().define(definition)


@dataclass(frozen=True, slots=True)
class FileSinkConfig:
    """Where lines are written, and where they are staged.

    Attributes:
        target: absolute path of the file; "" is standard output.
        root: directory of the file; segments are staged in its `+tmp`.
        prefix: of the keys of this connector's segments.
    """

    target: str
    root: str
    prefix: str

    @classmethod
    def from_config(cls, raw: Mapping[str, str]) -> FileSinkConfig:
        """Read a connector configuration.

        Raises:
            ConfigError: a key is wrong.
        """
        given = FileSinkKeys.from_config(raw)
        name = quote(given.parsed[sink_keys.NAME], safe=" ")
        if len(name) > _LONGEST_PLAIN_NAME:
            name = hashlib.sha256(name.encode()).hexdigest()
        if not given.file:
            root = os.path.join(tempfile.gettempdir(), f"airflow-connect-{os.geteuid()}")
            return cls("", root, f"stdout/connector={name}/")
        target = os.path.abspath(given.file)
        directory, file_name = os.path.split(target)
        return cls(target, directory, f"{file_name}/connector={name}/")

    @property
    def store_name(self) -> str:
        """Where lines are written, as text for messages and for the journal."""
        return f"file://{self.target}" if self.target else f"standard output (staged in {self.root})"


def writes_to_stdout(config: Mapping[str, Any]) -> bool:
    """Whether a configuration of this sink has no `file`."""
    return not str(config.get(FileSinkKeys.file.name) or "").strip()


def is_line_output(config: Mapping[str, Any]) -> bool:
    """Whether a configuration is for this sink and writes to standard output. References need not be resolved."""
    name = str(config.get(sink_keys.CONNECTOR_CLASS) or "")
    try:
        path = resolve(PluginKind.CONNECTOR, name).path
    except ConfigError:  # Set by the program that runs it.
        return False
    return path == CLASS and writes_to_stdout(config)
