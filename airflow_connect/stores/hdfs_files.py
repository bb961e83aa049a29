"""Files and directories of an HDFS: one client, patience with what passes, and refusals as typed errors."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from airflow_connect.api.errors import ConnectError, UnavailableError, missing_package
from airflow_connect.stores.hdfs_answers import AnsweringClient, AnsweringWriter
from airflow_connect.stores.hdfs_errors import (
    DATA_NODE_AWAY,
    GONE,
    NO_ANSWER,
    UNREACHABLE,
    Refusal,
    away,
    error_for,
    read_refusal,
)
from airflow_connect.stores.hdfs_settings import CLIENT_PROPERTIES, HdfsSettings

if TYPE_CHECKING:
    from hdfs_native import FileStatus, WriteOptions

log = logging.getLogger(__name__)

T = TypeVar("T")
Chunk = bytes | bytearray

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 3.0
FILE_PERMISSION = 0o666
DIRECTORY_PERMISSION = 0o777
"""Hadoop's own defaults; `fs.permissions.umask-mode` of Java's client takes 022 from them, and so do we."""
UMASK = 0o022


_THROUGH_DATA_NODES = frozenset({"write", "close", "read"})
"""Operations, as messages call them, that send or fetch blocks."""
DIRECTORY_IN_THE_WAY = "must both be directories"
"""How FSDirRenameOp.validateOverwrite refuses to rename a file to the name of a directory: with a plain IOException."""


class Connection(Protocol):
    """Gives out one client, made when it is asked for first."""

    def client(self) -> AnsweringClient:
        """The client; a RuntimeError or OSError of it is a refusal of HDFS."""

    def close(self) -> None:
        """Let go of the client; idempotent."""


class NativeConnection:
    """A client of hdfs-native."""

    def __init__(self, settings: HdfsSettings) -> None:
        """Nothing is sent yet."""
        self._settings = settings
        self._lock = threading.Lock()
        self._client: AnsweringClient | None = None

    def client(self) -> AnsweringClient:
        """See `Connection`.

        Raises:
            MissingPackageError: hdfs-native is not installed.
            ConfigError: the configuration of Hadoop is missing.
        """
        with self._lock:
            if self._client is None:
                self._client = _new_client(self._settings)
            return self._client

    def close(self) -> None:
        """See `Connection`."""
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._client = None


class HdfsFiles:
    """Requests to one HDFS. Paths are those inside HDFS (`/topics/...`). Safe to use from several threads.

    Every method waits for what passes (a NameNode restarts, safe mode, a failover), up to `HdfsSettings.retry_s`, and
    for each answer up to `HdfsSettings.answer_s`. It raises then, or at once where HDFS refuses for good: AccessError,
    ConfigError, DataError, UnavailableError.
    """

    def __init__(
        self, settings: HdfsSettings, retry_s: float | None = None, connection: Connection | None = None
    ) -> None:
        """Nothing is sent yet.

        Args:
            settings: the HDFS.
            retry_s: other than the settings'.
            connection: default: hdfs-native.
        """
        self._settings = settings
        self._retry_s = settings.retry_s if retry_s is None else retry_s
        self._connection = connection or NativeConnection(settings)

    def with_patience(self, retry_s: float) -> HdfsFiles:
        """The same through the same connection, with other patience; closing either closes both."""
        return HdfsFiles(self._settings, retry_s, self._connection)

    def place(self, path: str) -> str:
        """URL of a path, for people."""
        return f"{self._settings.address}{path}"

    def status(self, path: str) -> FileStatus | None:
        """Size, times and kind of a file or directory; None where nothing is."""
        try:
            return self._call("look at", path, lambda client: client.get_file_info(path))
        except FileNotFoundError:
            return None

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; it may be there."""
        mode = DIRECTORY_PERMISSION & ~UMASK
        try:
            self._call("create", path, lambda client: client.mkdirs(path, mode, create_parent=True))
        except FileExistsError as error:
            raise error_for(
                Refusal("ParentNotDirectoryException", str(error).partition("\n")[0]), "create", path
            ) from error

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        """Move a file, atomically. After a reply that was lost, a repeated request finds no source any more.

        Raises:
            FileNotFoundError: no such source, or no parent of the target.
            FileExistsError: something stands under the target, and `overwrite` is false.
        """
        try:
            self._call(f"rename {source} to", target, lambda client: client.rename(source, target, overwrite))
        except UnavailableError as error:
            if DIRECTORY_IN_THE_WAY in error.message:
                raise FileExistsError(target) from error
            raise

    def delete(self, path: str) -> bool:
        """Delete a file; returns whether it was there."""
        return self._call("delete", path, lambda client: client.delete(path, False))

    def recover_lease(self, path: str) -> bool:
        """Have a file closed that a dead process was writing; whether it is closed now, else ask again."""
        return self._call("recover the lease of", path, lambda client: client.recover_lease(path))

    def remove_empty_directory(self, path: str) -> bool:
        """Delete a directory that holds nothing; returns whether it is gone."""
        try:
            self._call(
                "delete", path, lambda client: client.delete(path, False), quiet=("PathIsNotEmptyDirectoryException",)
            )
        except _QuietError:
            return False
        return True

    def walk(self, directory: str) -> Iterator[FileStatus]:
        """All files below a directory; none where it is missing."""
        while True:
            try:
                return iter(self._call("list", directory, lambda client: list(client.list_status(directory, True))))
            except FileNotFoundError:
                # Perhaps only one below it has gone while it was listed.
                if self.status(directory) is None:
                    return iter(())

    def create_empty(self, path: str) -> None:
        """Make sure that a file stands under the path; one that is there stays."""
        try:
            self.write(path, tuple, overwrite=False)
        except FileExistsError:
            return

    def write(self, path: str, chunks: Callable[[], Iterable[Chunk]], *, overwrite: bool = True) -> None:
        """Write a whole file and close it. What failed on the way is written again from its first byte.

        Args:
            path: where; parents are made.
            chunks: gives its bytes, once for every try.
            overwrite: replace what is there.

        Raises:
            FileExistsError: it is there, and `overwrite` is false.
        """

        def attempt(client: AnsweringClient) -> None:
            writer = client.create(path, _options(overwrite=overwrite))
            for chunk in chunks():
                writer.write(chunk)
            writer.close()

        self._call("write", path, attempt, starts_over=True)

    def open(self, path: str) -> AnsweringWriter:
        """Create a file that grows; it holds a connection to a DataNode until it is closed."""
        return self._call("create", path, lambda client: client.create(path, _options(overwrite=True)))

    def append(self, writer: AnsweringWriter, path: str, chunk: Chunk) -> None:
        """Write to a file from `open`. Not repeated: nobody knows how much of it arrived."""
        self._once("write", path, lambda: writer.write(chunk))

    def finish(self, writer: AnsweringWriter, path: str) -> None:
        """Close a file from `open`."""
        self._once("close", path, writer.close)

    def read(self, path: str, size: int) -> Iterator[bytes]:
        """The bytes of a file in chunks.

        Raises:
            FileNotFoundError: nothing is there.
        """
        reader = self._call("read", path, lambda client: client.read(path))
        for start in range(0, len(reader), size):
            length = min(size, len(reader) - start)
            yield self._call("read", path, lambda _: reader.read_range(start, length))  # noqa: B023 (called at once)

    def read_part(self, path: str, start: int, length: int) -> bytes:
        """`length` bytes of a file from `start` on, all of which are there.

        Raises:
            FileNotFoundError: nothing is there.
        """
        reader = self._call("read", path, lambda client: client.read(path))
        return self._call("read", path, lambda _: reader.read_range(start, length))

    def close(self) -> None:
        """Let go of the client; idempotent."""
        self._connection.close()

    def _once(self, operation: str, path: str, work: Callable[[], object]) -> None:
        try:
            work()
        except (OSError, RuntimeError) as error:
            refusal = read_refusal(error)
            place = self.place(path)
            if refusal.is_transient:
                raise self._away(refusal, operation, path, 0) from error
            raise error_for(refusal, operation, place) from error

    def _away(self, refusal: Refusal, operation: str, path: str, waited_s: float) -> UnavailableError:
        """The error for what did not pass.

        hdfs-native does not tell whether it was the NameNode or a DataNode to which a connection failed.
        """
        if operation in _THROUGH_DATA_NODES and refusal.kind in UNREACHABLE and self._name_node_answers():
            refusal = Refusal(DATA_NODE_AWAY, refusal.text)
        return away(refusal, operation, self.place(path), waited_s)

    def _name_node_answers(self) -> bool:
        try:
            self._connection.client().get_file_info("/")
        except (OSError, RuntimeError, ConnectError) as error:
            log.debug("The NameNode does not answer either: %s", error)
            return False
        return True

    def _call(
        self,
        operation: str,
        path: str,
        work: Callable[[AnsweringClient], T],
        *,
        quiet: tuple[str, ...] = (),
        starts_over: bool = False,
    ) -> T:
        """One request, repeated while what hinders it may pass.

        Args:
            operation: for messages.
            path: what it is about.
            work: the request.
            quiet: refusals that the caller expects.
            starts_over: a file that vanished while it was written is worth one more try.
        """
        started = time.monotonic()
        pause = FIRST_PAUSE_S
        while True:
            try:
                return work(self._connection.client())
            except ConnectError:
                raise
            except (OSError, RuntimeError) as error:
                refusal = read_refusal(error)
                if refusal.kind in quiet:
                    raise _QuietError from error
                waited = time.monotonic() - started
                if starts_over and refusal.kind in GONE:
                    starts_over = False
                elif isinstance(error, (FileNotFoundError, FileExistsError)):
                    raise
                elif not refusal.is_transient:
                    raise error_for(refusal, operation, self.place(path)) from error
                elif refusal.kind in NO_ANSWER or waited >= self._retry_s:
                    # Who was silent for that long is not asked again and again.
                    raise self._away(refusal, operation, path, waited) from error
                log.debug("HDFS could not %s %s, trying again: %s", operation, path, refusal)
            # Jitter keeps a thousand threads from coming back at once.
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(LONGEST_PAUSE_S, pause * 2)


class _QuietError(Exception):
    """A refusal that the caller of `_call` asked to be told of."""


def _options(*, overwrite: bool) -> WriteOptions:
    from hdfs_native import WriteOptions

    return WriteOptions(permission=FILE_PERMISSION & ~UMASK, overwrite=overwrite)


def _new_client(settings: HdfsSettings) -> AnsweringClient:
    try:
        from hdfs_native import Client
    except ImportError as error:
        raise missing_package(
            "hdfs-native",
            "hdfs",
            purpose="HDFS",
            where="where the driver and the executors run",
            config_path="store.url",
        ) from error
    settings.check_conf_dir()
    # It writes a warning with Java's stack for every refusal, also for those that are an answer.
    logging.getLogger("hdfs_native").setLevel(logging.ERROR)
    try:
        client = Client(
            settings.url,
            dict(CLIENT_PROPERTIES),
            settings.conf_dir or None,
            kerberos_principal=settings.principal or None,
            kerberos_keytab=settings.keytab or None,
        )
    except (OSError, RuntimeError) as error:
        raise error_for(read_refusal(error), "open", settings.address) from error
    return AnsweringClient(client, settings.answer_s)
