"""A store: files are rows of a SQLite table. What is staged has no name yet, and giving it one publishes it."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from sqlite3 import Connection, OperationalError, connect

from airflow_connect.api.staging import LeftOver, Outcome, StagedFile
from airflow_connect.errors import ConfigError, PublishConflictError, UnavailableError
from airflow_connect.stores.store import FileIdentity, FilePublisher, Stager, StagingFile, Store

TABLE = "CREATE TABLE IF NOT EXISTS files (name PRIMARY KEY, content, staged_as UNIQUE, staged_for)"


@contextmanager
def transaction(path: str) -> Iterator[Connection]:
    """One transaction, which waits for others; nothing of it stays if it fails."""
    try:
        with closing(connect(path, timeout=60, isolation_level=None)) as database, database:
            database.execute("BEGIN IMMEDIATE")  # otherwise Python would begin after the first SELECT
            database.execute(TABLE)
            yield database
    except OperationalError as error:
        raise UnavailableError(f"{path} cannot be read or written: {error}.", code="server.unavailable") from error


class SqliteStagingFile(StagingFile):
    def __init__(self, path: str, identity: FileIdentity) -> None:
        self.path, self.identity, self.data = path, identity, bytearray()
        self.token = uuid.uuid4().hex
        self.is_closed = False

    @property
    def buffered_bytes(self) -> int:
        return len(self.data)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.is_closed:
            raise ValueError(f"The staged file {self.identity.key} is closed.")
        self.data += data
        if len(self.data) >= 1 << 20:
            self.spill()

    def spill(self) -> None:
        """Append to the row: SQLite is on a disk already."""
        append = "UPDATE files SET content = CAST(content || ? AS BLOB) WHERE staged_as = ?"
        with transaction(self.path) as database:
            if not database.execute(append, (bytes(self.data), self.token)).rowcount:
                row = (bytes(self.data), self.token, self.identity.key)
                database.execute("INSERT INTO files VALUES (NULL, ?, ?, ?)", row)
        self.data = bytearray()

    def close(self, end: int, records: int) -> Future[StagedFile]:
        self.spill()
        self.is_closed = True
        with transaction(self.path) as database:
            query = "SELECT length(content) FROM files WHERE staged_as = ?"
            (size,) = database.execute(query, (self.token,)).fetchone()
        file, done = self.identity, Future[StagedFile]()
        token = {"row": self.token}
        done.set_result(
            StagedFile(
                file.final_key(end), file.topic, file.partition, file.start, end, records, size, token, file.role
            )
        )
        return done

    def abort(self) -> None:
        self.is_closed, self.data = True, bytearray()
        with transaction(self.path) as database:
            database.execute("DELETE FROM files WHERE staged_as = ? AND name IS NULL", (self.token,))


@dataclass
class SqliteStager(Stager):
    path: str

    def open(self, identity: FileIdentity) -> SqliteStagingFile:
        return SqliteStagingFile(self.path, identity)

    def close(self) -> None:
        """Nothing is open between two calls."""


@dataclass
class SqlitePublisher(FilePublisher):
    path: str
    overwrite: bool
    possible_duplicates = False

    def preflight(self) -> None:
        with transaction(self.path) as database:
            database.execute("DELETE FROM files WHERE name = ''")  # needs the right to write

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        if len({file.key for file in files}) < len(files):
            raise PublishConflictError("Two staged files have one name.", code="publish.same_key")
        outcomes, conflicts = {}, []
        for done, file in enumerate(files, start=1):
            try:
                outcomes[file.key] = self._publish_one(file.key, str(file.token["row"]))
            except PublishConflictError as conflict:  # the others are published all the same
                conflicts.append(conflict)
            progress(done)
        if conflicts:
            raise conflicts[0]
        return outcomes

    def _publish_one(self, key: str, token: str) -> Outcome:
        with transaction(self.path) as database:
            mine = database.execute("SELECT name, content FROM files WHERE staged_as = ?", (token,)).fetchone()
            there = database.execute("SELECT staged_as, content FROM files WHERE name = ?", (key,)).fetchone()
            if there is not None and there[0] == token:
                return Outcome.ALREADY_PUBLISHED
            if mine is None or mine[0] is not None:
                if there is None:
                    return Outcome.LOST
                raise self._conflict(key)
            if there is not None and there[1] == mine[1]:
                database.execute("DELETE FROM files WHERE staged_as = ?", (token,))
                return Outcome.ALREADY_PUBLISHED
            if there is not None and not self.overwrite:
                raise self._conflict(key)
            database.execute("DELETE FROM files WHERE name = ?", (key,))
            database.execute("UPDATE files SET name = ? WHERE staged_as = ?", (key, token))
            return Outcome.PUBLISHED

    def _conflict(self, key: str) -> PublishConflictError:
        advice = "Move it away and run again."
        return PublishConflictError(f"{key} in {self.path} holds another file than the staged one.", suggestion=advice)

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        remove = "DELETE FROM files WHERE staged_as = ? AND name IS NULL"
        with transaction(self.path) as database:
            return sum(database.execute(remove, (file.token["row"],)).rowcount for file in files)

    def list_staged(self, prefixes: Iterable[str]) -> Iterator[LeftOver]:
        with transaction(self.path) as database:
            rows = database.execute("SELECT staged_for, staged_as FROM files WHERE name IS NULL").fetchall()
        wanted = tuple(prefixes)
        return (LeftOver(key, {"row": token}) for key, token in rows if key.startswith(wanted))

    def mark(self, keys: Sequence[str]) -> None:
        with transaction(self.path) as database:
            rows = [(key, b"") for key in keys]
            database.executemany("INSERT OR IGNORE INTO files VALUES (?, ?, NULL, NULL)", rows)

    def write(self, key: str, data: bytes) -> None:
        with transaction(self.path) as database:
            database.execute("DELETE FROM files WHERE name = ?", (key,))
            database.execute("INSERT INTO files VALUES (?, ?, NULL, NULL)", (key, data))

    def close(self) -> None:
        """Nothing is open between two calls."""


@dataclass(frozen=True)
class SqliteStore(Store):
    path: str

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise ConfigError(f"{self.path} is not absolute.", suggestion="Every process must find the same file.")

    @property
    def name(self) -> str:
        return f"sqlite:{self.path}"

    def stager(self, run_id: str) -> SqliteStager:
        return SqliteStager(self.path)

    def publisher(self, *, probe_prefix: str, overwrite: bool) -> SqlitePublisher:
        return SqlitePublisher(self.path, overwrite)
