"""What a third party writes and names by its dotted path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from airflow_connect.api.record import SinkRecord


class KeyPartitioner:
    """One directory per first letter of the key; `key.letters` of the connector says how many letters."""

    is_time_based = False

    def __init__(self, letters: int = 1) -> None:
        self._letters = letters

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> Self:
        return cls(int(config["key.letters"]))

    def timestamp_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        return None

    def directory(self, record: SinkRecord, now_ms: int) -> str:
        return f"letter={record.key[: self._letters]}"

    def directory_regex(self) -> str:
        return "letter=[a-z]+"


class PlainPartitioner(KeyPartitioner):
    """Without configuration: made by calling the class."""

    from_config = None  # type: ignore[assignment]


class SecondsExtractor:
    """Timestamps in seconds, in the field that `seconds.field` names."""

    java_class = "org.example.SecondsExtractor"
    needs_value = True

    def __init__(self, field: str) -> None:
        self._field = field

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> Self:
        return cls(config["seconds.field"])

    def extract_ms(self, record: SinkRecord, now_ms: int) -> int | None:
        return int(record.value[self._field]) * 1000


class TextFormat:
    """Values as text, each after the prefix that `text.prefix` names."""

    extension = ".txt"
    content_type = "text/plain"
    content_encoding = ""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> Self:
        return cls(config["text.prefix"])

    def open(self, sink: Any, schema: Any) -> TextEncoder:
        return TextEncoder(sink, self._prefix)


class TextEncoder:
    """Writes through."""

    buffered_bytes = 0

    def __init__(self, sink: Any, prefix: str) -> None:
        self._sink = sink
        self._prefix = prefix

    def append(self, values: Sequence[Any]) -> None:
        self._sink.write("".join(f"{self._prefix}{value}\n" for value in values).encode())

    def spill(self) -> None:
        """Nothing is held."""

    def finish(self) -> None:
        """No footer."""
