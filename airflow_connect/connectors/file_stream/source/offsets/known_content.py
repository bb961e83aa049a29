"""Compares files with what offsets say about their content."""

from __future__ import annotations

from airflow_connect.connectors.file_stream.source.config import FileSourceConfig
from airflow_connect.connectors.file_stream.source.file_offsets import (
    FINGERPRINT_BYTES,
    TAIL_BYTES,
    FileOffset,
    content_hash,
    hashed_bytes,
)
from airflow_connect.connectors.file_stream.source.read.content import (
    BLOCK_BYTES,
    NONE,
    codec_of,
    open_content,
    read_range,
)
from airflow_connect.errors import DataError
from airflow_connect.stores.file_system import FoundFile, GoneError, changed_meanwhile
from airflow_connect.stores.file_systems import FileSystems


class KnownContent:
    """Reads the beginning of each file once."""

    def __init__(self, config: FileSourceConfig, file_systems: FileSystems) -> None:
        """Nothing is read yet."""
        self._config, self._file_systems = config, file_systems
        self._heads: dict[str, bytes] = {}
        self._head_hashes: dict[tuple[str, int], str] = {}

    def is_packed(self, file: FoundFile) -> bool:
        """Whether a file is compressed."""
        return self.is_packed_name(file.name)

    def is_packed_name(self, name: str) -> bool:
        """Whether a file with a name is compressed."""
        return codec_of(name, self._config.compression) != NONE

    def may_be_same(self, name: str, file: FoundFile) -> bool:
        """Whether a file can be the one that had a name: compressing writes another file, with any free inode."""
        return self.is_packed_name(name) == self.is_packed(file)

    def holds(self, file: FoundFile, known: FileOffset) -> bool:
        """Whether the content of a file matches an offset, as far as the offset describes it."""
        is_content = self._file_systems.of(file.name).identity_is_content
        if file.identity and file.identity == known.identity:
            # A compressed file would have to be decompressed up to the position.
            is_same = known.is_unmodified(file) and known.whole == file.size
            if is_content or is_same:
                return True
        if not self.is_packed(file) and file.size < known.position:
            return False
        count = hashed_bytes(known.fingerprint)
        if count and self._head_hash(file, count) != known.fingerprint:
            return False
        size = hashed_bytes(known.tail)
        return content_hash(self._bytes(file, known.position - size, size)) == known.tail

    def ends_at(self, file: FoundFile, position: int) -> bool:
        """Whether the content of a file has no byte at or after a position."""
        return not self._bytes(file, position, 1) if self.is_packed(file) else file.size <= position

    def is_beginning(self, packed: FoundFile, plain: FoundFile) -> bool:
        """Whether a compressed file, as far as it is written, contains the beginning of another one, or all of it."""
        codec = codec_of(packed.name, self._config.compression)
        try:
            with (
                open_content(self._file_systems.of(packed.name), packed, codec) as written,
                open_content(self._file_systems.of(plain.name), plain, NONE) as whole,
            ):
                while block := written.read(BLOCK_BYTES):
                    if whole.peek(len(block)) != block:
                        return False
                    whole.read(len(block))
        except DataError as error:
            return error.code == "file.truncated"
        except GoneError:
            return False
        return True

    def offset_at_end(self, file: FoundFile) -> FileOffset:
        """The offset of a file of which nothing more is wanted."""
        head = content_hash(self._bytes(file, 0, FINGERPRINT_BYTES))
        if self.is_packed(file):
            # The position would need all of it to be decompressed; `whole` says enough.
            return FileOffset(0, head, "", file.identity, file.size).at_time_of(file)
        size = min(TAIL_BYTES, file.size)
        tail = content_hash(self._bytes(file, file.size - size, size))
        return FileOffset(file.size, head, tail, file.identity).at_time_of(file)

    def _head_hash(self, file: FoundFile, count: int) -> str:
        key = file.name, count
        if key not in self._head_hashes:
            if file.name not in self._heads:
                self._heads[file.name] = self._bytes(file, 0, FINGERPRINT_BYTES)
            self._head_hashes[key] = content_hash(self._heads[file.name][:count])
        return self._head_hashes[key]

    def _bytes(self, file: FoundFile, start: int, size: int) -> bytes:
        if not size:
            return b""
        file_system = self._file_systems.of(file.name)
        try:
            return read_range(file_system, file, codec_of(file.name, self._config.compression), start, size)
        except GoneError as error:
            # Its content would seem to be new. What was there may have a name by now that the run has not listed.
            raise changed_meanwhile(str(error)) from error
