"""Files of JSON documents, lines, separated bytes and CSV: streams, which may be compressed."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import orjson
from isal import isal_zlib

from airflow_connect.api.schema import BYTES, OPTIONAL_STRING, STRING, Schema, struct
from airflow_connect.connectors.restore.options import (
    GZIP,
    ZSTD,
    CsvOptions,
)
from airflow_connect.connectors.restore.values.batches import (
    Values,
)
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.converters.json.documents import lines_column

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 5_000
BYTES_AT_ONCE = 4 << 20
LARGEST_BYTES = 256 << 20
"""Of one value; a file that has no separator is not read into memory without a limit."""
_PIECE = 1 << 20
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?P<end>"?)|[^ \t\r\n"\[\]{},:]++|[\[\]{},:]')
"""Texts, with or without an end; other scalars; and single characters."""


def decompressed(content: io.RawIOBase, name: str) -> io.BufferedReader:
    """The bytes of a file, decompressed as its name says; a stream that is cut off fails."""
    if name.endswith(GZIP):
        return io.BufferedReader(_Gzip(content), _PIECE)
    if name.endswith(ZSTD):
        return io.BufferedReader(_Zstd(content), _PIECE)
    return io.BufferedReader(content, _PIECE)


class _Decompressed(io.RawIOBase):
    """A stream that reads another one."""

    def __init__(self, content: io.RawIOBase) -> None:
        self._content = content
        self._ready = b""
        if not content.seek(0, io.SEEK_END):
            raise EOFError("its compressed stream is cut off before its first byte")
        content.seek(0)

    def readable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def readinto(self, buffer: Any) -> int:
        """See `io.RawIOBase`."""
        view = memoryview(buffer).cast("B")
        if not self._ready:
            self._ready = self._next()
        count = min(len(view), len(self._ready))
        view[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _next(self) -> bytes:
        raise NotImplementedError


class _Gzip(_Decompressed):
    """One or several members (RFC 1952)."""

    def __init__(self, content: io.RawIOBase) -> None:
        super().__init__(content)
        self._stream: Any = None
        self._input = b""

    def _next(self) -> bytes:
        while True:
            if not self._input:
                self._input = self._content.read(_PIECE) or b""
                if not self._input:
                    if self._stream is not None:
                        raise EOFError("its compressed stream is cut off")
                    return b""
            if self._stream is None:
                self._stream = isal_zlib.decompressobj(wbits=31)
            data: bytes = self._stream.decompress(self._input, _PIECE * 8)
            self._input = self._stream.unconsumed_tail
            if self._stream.eof:
                self._input, self._stream = self._stream.unused_data, None
            if data:
                return data


class _Zstd(_Decompressed):
    """Frames of Zstandard (RFC 8878)."""

    def __init__(self, content: io.RawIOBase) -> None:
        super().__init__(content)
        self._stream: Any = None

    def _next(self) -> bytes:
        import pyarrow as pa

        if self._stream is None:
            self._stream = pa.CompressedInputStream(pa.PythonFile(self._content, "r"), "zstd")
        data: bytes = self._stream.read(_PIECE)
        return data


def _batches(rows: Iterator[tuple[Schema | None, Any, int]], first: int = 0) -> Iterator[Values]:
    """Rows in batches of one schema and bounded size; those before a damaged one come, and then its error.

    Args:
        rows: schema, value, and bytes of each.
        first: number of the first one.
    """
    index, total = first, 0
    kept: list[Any] = []
    schema: Schema | None = None
    try:
        for found, value, size in rows:
            if kept and (found != schema or len(kept) >= ROWS_AT_ONCE or total >= BYTES_AT_ONCE):
                yield Values(index, schema, kept)
                index, kept, total = index + len(kept), [], 0
            schema = found
            kept.append(value)
            total += size
    except Exception:
        if kept:
            yield Values(index, schema, kept)
        raise
    if kept:
        yield Values(index, schema, kept)


def separated(stream: io.BufferedReader, separator: bytes) -> Iterator[bytes]:
    """The parts of a stream; the last one may have a separator after it, or not."""
    for parts in _groups(stream, separator):
        yield from parts


def _groups(stream: io.BufferedReader, separator: bytes) -> Iterator[list[bytes]]:
    """The parts of a stream, as many at a time as are read."""
    rest = bytearray()
    while piece := stream.read(_PIECE):
        seen = max(0, len(rest) - len(separator) + 1)
        rest += piece
        if rest.find(separator, seen) >= 0:
            *parts, last = bytes(rest).split(separator)
            yield parts
            rest = bytearray(last)
        if len(rest) > LARGEST_BYTES:
            raise ValueError(f"a value is larger than {LARGEST_BYTES} bytes")
    if rest:
        yield [bytes(rest)]


def bytes_values(stream: io.BufferedReader, separator: bytes) -> Iterator[Values]:
    """Files of ByteArrayFormat."""
    yield from _batches((BYTES, part, len(part)) for part in separated(stream, separator))


def text_values(stream: io.BufferedReader) -> Iterator[Values]:
    """Lines of UTF-8, as StringFormat writes them."""
    yield from _batches((STRING, line.decode(), len(line)) for line in separated(stream, b"\n"))


def documents(stream: io.BufferedReader) -> Iterator[bytes]:
    """JSON documents: one for each line, or several in a line, or one over several lines."""
    divider = _Divider()
    for lines in _groups(_without_mark(stream), b"\n"):
        yield from divider.documents(lines)
    divider.end()


def _without_mark(stream: io.BufferedReader) -> io.BufferedReader:
    if stream.peek(3).startswith(codecs.BOM_UTF8):
        stream.read(3)
    return stream


def _is_document(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


class _Divider:
    """Finds where documents end by their brackets, so the time it needs grows with the size of a file only."""

    def __init__(self) -> None:
        self._depth = self._size = 0
        self._lines: list[bytes] = []

    @property
    def is_inside(self) -> bool:
        """Whether a document has begun, and not ended."""
        return bool(self._lines)

    def documents(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The documents that end in some lines, most of which are one each."""
        for line in lines:
            if self.is_inside or not _is_document(line):
                yield from self.take(line)
            else:
                yield line

    def take(self, line: bytes) -> Iterator[bytes]:
        """The documents that end in a line. Whether they are JSON is for the converter to say."""
        start = 0
        for found in _TOKEN.finditer(line):
            token = found.group()
            if self._depth == 0:
                start = found.start()
            if token in (b"{", b"["):
                self._depth += 1
            elif token in (b"}", b"]"):
                self._depth -= 1
            elif found["end"] == b"":
                raise ValueError("a text has no end in its line")
            if self._depth < 0 or (self._depth == 0 and token in (b",", b":")):
                raise ValueError(f"there is a {token.decode()} where a document was expected")
            if self._depth == 0:
                yield b"\n".join([*self._lines, line[start : found.end()]])
                self._lines, self._size = [], 0
        if self._depth:
            self._lines.append(line[start:])
            self._size += len(line) - start + 1
            if self._size > LARGEST_BYTES:
                raise ValueError(f"a document is larger than {LARGEST_BYTES} bytes")

    def end(self) -> None:
        """The file has ended.

        Raises:
            ValueError: a document has not.
        """
        if self._lines:
            orjson.loads(b"\n".join(self._lines))  # says what is wrong, and where
            raise ValueError("its last document has no end")


def json_values(stream: io.BufferedReader, *, has_schemas: bool) -> Iterator[Values]:
    """Documents as JsonConverter reads them; values of one schema at a time.

    Lines that are one document each, none of them `null`, are columns if they have no schemas.
    """
    converters: list[JsonConverter] = []  # Made when it is needed: most files are small, and in columns.

    def rows(found: Iterator[bytes]) -> Iterator[tuple[Schema | None, Any, int]]:
        if not converters:
            converters.append(JsonConverter())
            # Strict: without it a number that has no place in its type becomes another one, as in Kafka Connect.
            converters[0].configure({"schemas.enable": str(has_schemas).lower(), "strict.types": "true"})
        converter = converters[0]
        for document in found:
            read = converter.to_connect("", document)
            yield read.schema, read.value, len(document)

    if has_schemas:
        yield from _batches(rows(documents(stream)))
        return
    divider, index = _Divider(), 0
    for lines in _groups(_without_mark(stream), b"\n"):
        column = None if divider.is_inside else _column(lines)
        parts = (
            _batches(rows(divider.documents(lines)), index) if column is None else [Values(index, None, None, column)]
        )
        for part in parts:
            yield part
            index += len(part)
    divider.end()


def _column(lines: list[bytes]) -> pa.Array[Any] | None:
    """Documents in columns; None: a line is something else, or they must be read one by one."""
    return lines_column(lines, is_strict=True)


def csv_values(stream: io.BufferedReader, options: CsvOptions) -> Iterator[Values]:
    """Rows of CSV (RFC 4180), whose fields are texts."""
    # A byte order mark would become a part of the first name.
    is_utf8 = codecs.lookup(options.charset).name == "utf-8"
    text = io.TextIOWrapper(stream, "utf-8-sig" if is_utf8 else options.charset, newline="")
    for _ in range(options.skip_lines):
        text.readline()  # of the file: a quote in a line that is passed over must not take rows with it
    csv.field_size_limit(LARGEST_BYTES)
    rows = csv.reader(text, delimiter=options.separator, quotechar=options.quote, doublequote=True, strict=True)
    first = next((row for row in rows if row), None)  # a blank line is no row
    if first is None:
        return
    names = first if options.first_row_as_header else [f"column{number:02d}" for number in range(1, len(first) + 1)]
    if len(set(names)) != len(names) or not all(names):
        raise ValueError(f"the names in its header are blank or occur twice: {', '.join(names)}")
    schema = struct(*((name, OPTIONAL_STRING) for name in names))

    def values() -> Iterator[dict[str, str | None]]:
        if not options.first_row_as_header:
            yield fields(first)
        for row in rows:
            if row:
                yield fields(row)

    def fields(row: list[str]) -> dict[str, str | None]:
        if len(row) != len(names):
            line = options.skip_lines + rows.line_num
            raise ValueError(f"line {line} has {len(row)} fields, and the first one has {len(names)}")
        return {
            name: None if options.empty_is_null and not part else part for name, part in zip(names, row, strict=True)
        }

    yield from _batches((schema, row, sum(len(part or "") for part in row.values())) for row in values())
