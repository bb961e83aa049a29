"""Records of a published file: Avro, Parquet, ORC, JSON lines, and lines of text."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import ConfigError, DataError
from airflow_connect.stores.file_system import FoundFile, GoneError

if TYPE_CHECKING:
    from airflow_connect.stores.file_system import FileSystem

MOST_BYTES = 1 << 30
_PIECE = 8 << 20


def records_of(files: FileSystem, name: str, limit: int) -> list[Any]:
    """The first records of a file.

    Args:
        files: where it is.
        name: path or URL; its ending tells the format.
        limit: at most so many.

    Raises:
        ConfigError: there is no such file, or it is too large to be looked at.
        DataError: it is damaged, or of another format than its name says.
        UnavailableError, AccessError: it cannot be read.
    """
    found = files.find(name)
    if found is None:
        raise ConfigError(f"There is no file {name}.", code="config.file_missing")
    if found.size > MOST_BYTES:
        raise ConfigError(f"{name} has {found.size} bytes; at most {MOST_BYTES} can be looked at.")
    content = _content(files, found)
    try:
        return list(islice(_records(name, content), limit))
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise DataError(
            f"{name} cannot be read as its name says: {type(error).__name__}: {error}.",
            suggestion="It may be damaged, or its name may have another ending than its format.",
        ) from error


def _content(files: FileSystem, found: FoundFile) -> bytes:
    try:
        opened = files.open(found)
        try:
            pieces, position = [], 0
            while piece := opened.read_at(position, _PIECE):
                pieces.append(piece)
                position += len(piece)
            return b"".join(pieces)
        finally:
            opened.close()
    except GoneError as error:
        raise ConfigError(f"{found.name} was deleted or replaced while it was read.") from error


def _records(name: str, content: bytes) -> Iterator[Any]:
    if name.endswith(".avro"):
        import fastavro

        yield from fastavro.reader(io.BytesIO(content))
    elif name.endswith(".parquet"):
        import pyarrow.parquet as parquet

        yield from parquet.read_table(io.BytesIO(content)).to_pylist()
    elif name.endswith(".orc"):
        from pyarrow import orc

        yield from orc.read_table(io.BytesIO(content)).to_pylist()
    else:
        plain = gzip.decompress(content) if name.endswith(".gz") else content
        as_json = ".json" in name
        for text in plain.decode("utf-8", "replace").splitlines():
            yield json.loads(text) if as_json else text
