"""The content of files: their bytes from a given position, decompressed if necessary."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from airflow_connect.errors import DataError
from airflow_connect.stores.file_system import FileBytes, FileSystem, FoundFile

BLOCK_BYTES = 1 << 20
"""Bytes requested at once."""
REMOTE_BLOCK_BYTES = 8 << 20
"""The same where requests are slow."""
_ZSTD_PIECE_BYTES = 1 << 16
NONE, GZIP, ZSTD, AUTO = "none", "gzip", "zstd", "auto"
_SUFFIXES = {".gz": GZIP, ".gzip": GZIP, ".zst": ZSTD, ".zstd": ZSTD}


def codec_of(name: str, setting: str) -> str:
    """How a file is compressed: according to `setting`; `auto` decides by the extension."""
    if setting != AUTO:
        return setting
    return next((codec for suffix, codec in _SUFFIXES.items() if name.lower().endswith(suffix)), NONE)


class Content:
    """Bytes of one file in order, up to a frozen end."""

    def __init__(self, file: FileBytes, read: Callable[[int], bytes]) -> None:
        """`read` returns the next bytes, b"" at the end; `file` is closed by `close`."""
        self._file, self._read = file, read
        self._ahead = b""
        self._piece = BLOCK_BYTES

    def read(self, size: int) -> bytes:
        """Up to `size` bytes, at least one unless nothing is left."""
        self._piece = max(BLOCK_BYTES, size)
        if self._ahead:
            data, self._ahead = self._ahead[:size], self._ahead[size:]
            return data
        return self._read(size)

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end; `read` returns them again.

        Raises:
            DataError: a compressed stream ends too early, or is damaged, and no byte comes before that.
        """
        try:
            # Request as much as reading does: the peeked bytes are the next block.
            while len(self._ahead) < size and (more := self._read(self._piece)):
                self._ahead += more
        except DataError:
            if not self._ahead:
                raise
            # It is raised again once these bytes are read.
        return self._ahead[:size]

    def raw(self, size: int) -> bytes:
        """The first bytes of the file itself as they are now; does not change what `read` returns next."""
        return self._file.read_at(0, size)

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def __enter__(self) -> Content:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_content(
    file_system: FileSystem, file: FoundFile, codec: str, start: int = 0, end: int | None = None
) -> Content:
    """The content from byte `start` to `end`; by default up to the size that the file had when it was found.

    Raises:
        GoneError: the file no longer exists.
        DataError: the compressed stream ends too early, or is damaged (also from `Content.read`).
    """
    opened = file_system.open(file)
    raw = _Raw(opened, file.size)
    try:
        if codec == NONE:
            raw.position = start
            raw.end = file.size if end is None else min(end, file.size)
            return Content(opened, raw.next)
        stream = _Gzip(raw, file.name) if codec == GZIP else _Zstd(raw, file.name)
        _skip(stream.next, start, file.name)
        return Content(opened, stream.next)
    except BaseException:
        opened.close()
        raise


def read_range(file_system: FileSystem, file: FoundFile, codec: str, start: int, size: int) -> bytes:
    """Up to `size` bytes of the content from `start`."""
    try:
        with open_content(file_system, file, codec, start, start + size) as content:
            return content.peek(size)
    except DataError:
        if codec == NONE:
            raise
        return b""  # a truncated compressed file is reported when it is read, not when it is compared


def _skip(read: Callable[[int], bytes], size: int, name: str) -> None:
    left = size
    while left:
        data = read(min(left, BLOCK_BYTES))
        if not data:
            raise DataError(
                f"{name} has {size - left} bytes of content, but {size} bytes were read before.",
                code="file.truncated",
                suggestion="Alter or delete the offset of that file.",
            )
        left -= len(data)


class _Raw:
    """The bytes of the file itself, in order."""

    def __init__(self, file: FileBytes, end: int) -> None:
        self._file = file
        self.position, self.end = 0, end

    def next(self, size: int) -> bytes:
        wanted = min(size, self.end - self.position)
        if wanted <= 0:
            return b""
        data = self._file.read_at(self.position, wanted)
        self.position += len(data)
        return data


class _Gzip:
    """Members of a gzip file, one after the other; zeros between and after them are padding."""

    def __init__(self, raw: _Raw, name: str) -> None:
        self._raw, self._name = raw, name
        self._input = b""
        self._produced = 0
        self._member: Any = None

    def next(self, size: int) -> bytes:
        from isal import isal_zlib

        while True:
            if not self._input:
                self._input = self._raw.next(BLOCK_BYTES)
            at_end = not self._input
            if self._member is None:
                self._input = self._input.lstrip(b"\0")
                if at_end:
                    return b""
                if not self._input:
                    continue
                self._member = isal_zlib.decompressobj(wbits=31)
            elif at_end:
                raise _cut_off(self._name, GZIP, self._produced)
            data = self._decompressed(isal_zlib.error, size)
            if data:
                self._produced += len(data)
                return data

    def _decompressed(self, failure: Any, size: int) -> bytes:
        try:
            data: bytes = self._member.decompress(self._input, size)
        except failure as error:
            raise _damaged(self._name, GZIP, self._produced, error) from error
        if self._member.eof:
            self._input = self._member.unused_data
            self._member = None
        else:
            self._input = self._member.unconsumed_tail
        return data


class _RawFile(io.RawIOBase):
    """A file object from which Arrow reads compressed bytes."""

    def __init__(self, raw: _Raw) -> None:
        super().__init__()
        self._raw = raw

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._raw.next(size if size >= 0 else BLOCK_BYTES)


class _Zstd:
    """Frames of a Zstandard file."""

    def __init__(self, raw: _Raw, name: str) -> None:
        import pyarrow as pa

        self._name = name
        self._produced = 0
        # Arrow treats an empty file as a truncated one.
        self._stream: Any = pa.CompressedInputStream(pa.PythonFile(_RawFile(raw), "r"), "zstd") if raw.end else None

    def next(self, size: int) -> bytes:
        if self._stream is None:
            return b""
        pieces: list[bytes] = []
        while size > 0:
            try:
                # Read in pieces: if Arrow fails, it discards what that call has read.
                piece: bytes = self._stream.read(min(size, _ZSTD_PIECE_BYTES))
            except OSError as error:
                if pieces:
                    break  # it fails again once these bytes are consumed
                if "runcated" in str(error):
                    raise _cut_off(self._name, ZSTD, self._produced) from error
                raise _damaged(self._name, ZSTD, self._produced, error) from error
            if not piece:
                break
            pieces.append(piece)
            self._produced += len(piece)
            size -= len(piece)
        return b"".join(pieces)


def _cut_off(name: str, codec: str, produced: int) -> DataError:
    return DataError(
        f"{name} ends in the middle of its {codec} stream, after {produced} bytes of content.",
        code="file.truncated",
        suggestion="The lines before that are copied. Replace the file with a complete one, or set"
        " errors.tolerance=all to"
        " skip the rest. If the file is still being written, a later run reads it.",
    )


def _damaged(name: str, codec: str, produced: int, error: Exception) -> DataError:
    return DataError(
        f"{name} is not a {codec} file, or it is damaged after {produced} bytes of content: {error}.",
        code="file.damaged",
        suggestion="Replace the file, set compression=none if it is not compressed, or set errors.tolerance=all to"
        " skip the rest.",
    )
