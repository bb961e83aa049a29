"""Files and directories of an HDFS: one client, retries of temporary failures, and refusals as typed errors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from airflow_connect.errors import ConnectError, UnavailableError, missing_package
from airflow_connect.retrying import Backoff, Jitter, Retry
from airflow_connect.stores.hdfs.contact import fastest_name_node_first, native_client
from airflow_connect.stores.hdfs.errors import (
    DATA_NODE_AWAY,
    GONE,
    NEXT_RUN,
    NO_ANSWER,
    UNREACHABLE,
    Refusal,
    away,
    error_for,
    read_refusal,
)
from airflow_connect.stores.hdfs.request_timeouts import TimeoutClient, TimeoutWriter
from airflow_connect.stores.hdfs.settings import FIRST_RETRY_S, HdfsSettings

if TYPE_CHECKING:
    from hdfs_native import FileStatus, WriteOptions

log = logging.getLogger(__name__)

T = TypeVar("T")
Chunk = bytes | bytearray

BACKOFF = Backoff(0.1, longest_s=3.0, jitter=Jitter.HALF)
FILE_PERMISSION = 0o666
DIRECTORY_PERMISSION = 0o777
"""Hadoop's own defaults, with 022 masked as by the default `fs.permissions.umask-mode` of Java's client."""
UMASK = 0o022


_THROUGH_DATA_NODES = frozenset({"write", "close", "read"})
"""Operations that send or fetch blocks, as named in messages."""
DIRECTORY_IN_THE_WAY = "must both be directories"
"""Message of FSDirRenameOp.validateOverwrite, a bare IOException, if a file is renamed to a directory's name."""


class Connection(Protocol):
    """Holds one client, created when it is first needed."""

    def client(self) -> TimeoutClient:
        """The client; a RuntimeError or OSError that it raises is a refusal by HDFS."""

    def close(self) -> None:
        """Release the client; idempotent."""


class NativeConnection:
    """A client of hdfs-native."""

    def __init__(self, settings: HdfsSettings) -> None:
        """Nothing is sent yet."""
        self._settings = settings
        self._lock = threading.Lock()
        self._client: TimeoutClient | None = None

    def client(self) -> TimeoutClient:
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

    Every method retries temporary failures (a NameNode restart, safe mode, a failover) for up to
    `HdfsSettings.retry_s`, and waits for each answer for up to `HdfsSettings.answer_s`. After that, or at once if the
    refusal is final, it raises AccessError, ConfigError, DataError or UnavailableError.
    """

    def __init__(
        self, settings: HdfsSettings, retry_s: float | None = None, connection: Connection | None = None
    ) -> None:
        """Nothing is sent yet.

        Args:
            settings: the HDFS.
            retry_s: overrides the one in `settings`.
            connection: default: hdfs-native.
        """
        self._settings = settings
        self._retry_s = settings.retry_s if retry_s is None else retry_s
        self._connection = connection or NativeConnection(settings)

    def with_patience(self, retry_s: float) -> HdfsFiles:
        """A copy that uses the same connection with another retry time; closing either closes both."""
        return HdfsFiles(self._settings, retry_s, self._connection)

    def contact(self) -> None:
        """Send any request with a short timeout, so that a run with a wrong address fails before it begins.

        A temporary refusal is retried for `FIRST_RETRY_S`; without an answer it gives up after `first_answer_s`.

        Raises:
            UnavailableError: there is no answer.
            AccessError, ConfigError: as for every request.
        """
        patience_s = min(FIRST_RETRY_S, self._settings.retry_s)
        bound_s = min(self._settings.first_answer_s, self._settings.answer_s)
        try:
            self.with_patience(patience_s)._call("look at", "/", lambda client: client.contact(bound_s))
        except UnavailableError as error:
            if error.code != "hdfs.no_answer":
                raise
            raise UnavailableError(
                error.message,
                code=error.code,
                config_path="store.url",
                suggestion="Check that store.url names the RPC port of a NameNode (8020 by default), that the NameNode "
                f"works, and that no firewall drops the packets in between. {NEXT_RUN}",
            ) from error

    def place(self, path: str) -> str:
        """URL of a path, for messages."""
        return f"{self._settings.address}{path}"

    def status(self, path: str) -> FileStatus | None:
        """Size, times and kind of a file or directory; None if it does not exist."""
        try:
            return self._call("look at", path, lambda client: client.get_file_info(path))
        except FileNotFoundError:
            return None

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; it may exist."""
        mode = DIRECTORY_PERMISSION & ~UMASK
        try:
            self._call("create", path, lambda client: client.mkdirs(path, mode, create_parent=True))
        except FileExistsError as error:
            raise error_for(
                Refusal("ParentNotDirectoryException", str(error).partition("\n")[0]), "create", path
            ) from error

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        """Move a file, atomically. If the reply was lost, the repeated request no longer finds the source.

        Raises:
            FileNotFoundError: no such source, or no parent of the target.
            FileExistsError: the target exists, and `overwrite` is false.
        """
        try:
            self._call(f"rename {source} to", target, lambda client: client.rename(source, target, overwrite))
        except UnavailableError as error:
            if DIRECTORY_IN_THE_WAY in error.message:
                raise FileExistsError(target) from error
            raise

    def delete(self, path: str) -> bool:
        """Delete a file; returns whether it existed."""
        return self._call("delete", path, lambda client: client.delete(path, False))

    def recover_lease(self, path: str) -> bool:
        """Close a file that a dead process was writing; returns whether it is closed now, otherwise call again."""
        return self._call("recover the lease of", path, lambda client: client.recover_lease(path))

    def remove_empty_directory(self, path: str) -> bool:
        """Delete an empty directory; returns whether it is gone."""
        try:
            self._call(
                "delete", path, lambda client: client.delete(path, False), quiet=("PathIsNotEmptyDirectoryException",)
            )
        except _QuietError:
            return False
        return True

    def walk(self, directory: str) -> Iterator[FileStatus]:
        """All files below a directory; none if it does not exist."""
        while True:
            try:
                return iter(self._call("list", directory, lambda client: list(client.list_status(directory, True))))
            except FileNotFoundError:
                # Perhaps only a subdirectory was deleted during the listing.
                if self.status(directory) is None:
                    return iter(())

    def create_empty(self, path: str) -> None:
        """Make sure that a file exists at the path; an existing file stays."""
        try:
            self.write(path, tuple, overwrite=False)
        except FileExistsError:
            return

    def write(self, path: str, chunks: Callable[[], Iterable[Chunk]], *, overwrite: bool = True) -> None:
        """Write a whole file and close it. After a failure it is written again from its first byte.

        Args:
            path: the file; parents are created.
            chunks: returns its bytes; called once per try.
            overwrite: replace an existing file.

        Raises:
            FileExistsError: it exists, and `overwrite` is false.
        """

        def attempt(client: TimeoutClient) -> None:
            writer = client.create(path, _options(overwrite=overwrite))
            for chunk in chunks():
                writer.write(chunk)
            writer.close()

        self._call("write", path, attempt, starts_over=True)

    def open(self, path: str) -> TimeoutWriter:
        """Create a file that grows; it holds a connection to a DataNode until it is closed."""
        return self._call("create", path, lambda client: client.create(path, _options(overwrite=True)))

    def append(self, writer: TimeoutWriter, path: str, chunk: Chunk) -> None:
        """Write to a file from `open`. Not retried: it is unknown how much of it arrived."""
        self._once("write", path, lambda: writer.write(chunk))

    def finish(self, writer: TimeoutWriter, path: str) -> None:
        """Close a file from `open`."""
        self._once("close", path, writer.close)

    def read(self, path: str, size: int) -> Iterator[bytes]:
        """The bytes of a file in chunks.

        Raises:
            FileNotFoundError: it does not exist.
        """
        reader = self._call("read", path, lambda client: client.read(path))
        for start in range(0, len(reader), size):
            length = min(size, len(reader) - start)
            yield self._call("read", path, lambda _: reader.read_range(start, length))  # noqa: B023 (called at once)

    def read_part(self, path: str, start: int, length: int) -> bytes:
        """`length` bytes of a file from `start`; all of them must exist.

        Raises:
            FileNotFoundError: it does not exist.
        """
        reader = self._call("read", path, lambda client: client.read(path))
        return self._call("read", path, lambda _: reader.read_range(start, length))

    def close(self) -> None:
        """Release the client; idempotent."""
        self._connection.close()

    def _once(self, operation: str, path: str, work: Callable[[], object]) -> None:
        try:
            work()
        except (OSError, RuntimeError) as error:
            refusal = read_refusal(error)
            place = self.place(path)
            if refusal.is_transient and self._is_gone(path):
                # A DataNode only drops the connection of a writer whose file was deleted.
                refusal = Refusal("FileNotFoundError", "it was deleted")
            if refusal.is_transient:
                raise self._away(refusal, operation, path, 0) from error
            raise error_for(refusal, operation, place) from error

    def _is_gone(self, path: str) -> bool:
        try:
            return self.with_patience(0).status(path) is None
        except ConnectError as error:
            log.debug("Whether %s still exists is unknown: %s", path, error)
            return False

    def _away(self, refusal: Refusal, operation: str, path: str, waited_s: float) -> UnavailableError:
        """The error for a temporary refusal that did not pass.

        hdfs-native does not report whether the failed connection was to the NameNode or to a DataNode.
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
        work: Callable[[TimeoutClient], T],
        *,
        quiet: tuple[str, ...] = (),
        starts_over: bool = False,
    ) -> T:
        """Make one request, and retry it while its failure may be temporary.

        Args:
            operation: for messages.
            path: for messages.
            work: the request.
            quiet: refusals that the caller expects.
            starts_over: if a file vanishes while it is written, try once more.
        """
        tries = Retry(BACKOFF, within_s=self._retry_s)
        while True:
            try:
                return work(self._connection.client())
            except ConnectError:
                raise
            except (OSError, RuntimeError) as error:
                refusal = read_refusal(error)
                if refusal.kind in quiet:
                    raise _QuietError from error
                waited_s = tries.elapsed_s
                is_new_start = starts_over and refusal.kind in GONE
                if is_new_start:
                    starts_over = False
                elif isinstance(error, (FileNotFoundError, FileExistsError)):
                    raise
                elif not refusal.is_transient:
                    raise error_for(refusal, operation, self.place(path)) from error
                elif refusal.kind in NO_ANSWER:
                    # A server that did not answer for that long is not asked again.
                    raise self._away(refusal, operation, path, waited_s) from error
                log.debug("HDFS could not %s %s: %s", operation, path, refusal)
                if not tries.pause() and not is_new_start:
                    raise self._away(refusal, operation, path, waited_s) from error


class _QuietError(Exception):
    """A refusal that the caller of `_call` wants to handle itself."""


def _options(*, overwrite: bool) -> WriteOptions:
    from hdfs_native import WriteOptions

    return WriteOptions(permission=FILE_PERMISSION & ~UMASK, overwrite=overwrite)


def _new_client(settings: HdfsSettings) -> TimeoutClient:
    try:
        import hdfs_native  # noqa: F401
    except ImportError as error:
        raise missing_package(
            "hdfs-native",
            "hdfs",
            purpose="HDFS",
            where="where the driver and the executors run",
            config_path="store.url",
        ) from error
    settings.check_conf_dir()
    # It logs a warning with Java's stack trace for every refusal, even for those that are normal results.
    logging.getLogger("hdfs_native").setLevel(logging.ERROR)
    try:
        client = native_client(settings, fastest_name_node_first(settings))
    except (OSError, RuntimeError) as error:
        raise error_for(read_refusal(error), "open", settings.address) from error
    return TimeoutClient(client, settings.answer_s)
