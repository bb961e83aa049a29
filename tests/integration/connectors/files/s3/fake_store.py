"""A stager that keeps what it gets in memory, for tests of the task without a server."""

from __future__ import annotations

from concurrent.futures import Future

from airflow_connect.api.staging import StagedFile
from airflow_connect.stores.store import FileIdentity


class MemoryFile:
    """One staged file."""

    def __init__(self, stager: MemoryStager, identity: FileIdentity) -> None:
        self._stager = stager
        self._identity = identity
        self._body = bytearray()

    @property
    def buffered_bytes(self) -> int:
        return len(self._body)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._body += data

    def spill(self) -> None:
        """Tests of the memory budget use the real store."""

    def close(self, end: int, records: int) -> Future[StagedFile]:
        identity = self._identity
        assert identity.key not in self._stager.bodies, f"{identity.key} staged twice"
        self._stager.bodies[identity.key] = bytes(self._body)
        file = StagedFile(
            identity.key, identity.topic, identity.partition, identity.start, end, records, len(self._body),
            role=identity.role,
        )  # fmt: skip
        done: Future[StagedFile] = Future()
        done.set_result(file)
        return done

    def abort(self) -> None:
        self._stager.aborted += 1


class MemoryStager:
    """`bodies`: bytes of every file that was closed, by key, in the order of closing."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.aborted = 0

    def open(self, identity: FileIdentity) -> MemoryFile:
        return MemoryFile(self, identity)

    def close(self) -> None:
        """Nothing to release."""
