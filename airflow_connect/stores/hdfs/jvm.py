"""Hadoop's own client in a JVM next to the driver, with the interface of hdfs-native that the driver uses.

For clusters whose security only the Java client supports. Files are renamed with FileContext, because
`FileSystem.rename` returns `false` alike for an existing target, a missing source and a missing parent. Source:
FileContext.rename, ClientProtocol.rename2; UserGroupInformation.loginUserFromKeytab, SecurityUtil for `_HOST` (py4j
cannot call that one: its methods refer to classes that are not in the jars used here).
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.errors import ConfigError, UnavailableError
from airflow_connect.stores.hdfs.contact import conf_folder, fastest_name_node_first
from airflow_connect.stores.hdfs.errors import NEXT_RUN, JavaRefusal
from airflow_connect.stores.hdfs.request_timeouts import RequestTimeouts
from airflow_connect.stores.hdfs.settings import CLIENT_PROPERTIES, HdfsSettings

if TYPE_CHECKING:
    from hdfs_native import WriteOptions

    from airflow_connect.api.sink_roles import Jvm, StartJvm

PROPERTIES = {
    **CLIENT_PROPERTIES,
    # With the defaults one call retries an unreachable NameNode for up to 15 minutes; our limit is `retry_s`.
    "ipc.client.connect.max.retries": "1",
    "ipc.client.connect.retry.interval": "200",
    "ipc.client.connect.max.retries.on.timeouts": "1",
}
_WRAPPERS = frozenset(
    {
        "IOException",
        "IllegalArgumentException",
        "InvocationTargetException",
        "RuntimeException",
        "UndeclaredThrowableException",
    }
)
"""Java exceptions that say less than their causes."""
_DEPTH = 10


@dataclass(frozen=True, slots=True)
class JavaStatus:
    """The contents of FileStatus: path without address, length in bytes, milliseconds since the epoch."""

    path: str
    length: int
    modification_time: int
    isdir: bool


class JvmClient:
    """The methods of `hdfs_native.Client` that the driver calls, with the same arguments and the same errors.

    Every method raises FileNotFoundError, FileExistsError, JavaRefusal for all other exceptions of Java, and
    UnavailableError if the JVM has ended. Safe to use from several threads.
    """

    def __init__(self, settings: HdfsSettings, start_jvm: StartJvm) -> None:
        """Start the JVM, log in, and open the file system; the NameNode is not contacted yet.

        Raises:
            ConfigError: `hadoop.conf.dir` is missing.
            AccessError, UnavailableError: Java or Hadoop is missing; or as above.
        """
        settings.check_conf_dir()
        folder = conf_folder(settings.conf_dir)
        self._jvm: Jvm = start_jvm([folder] if folder else [], ())
        try:
            with _java_errors(self._jvm):
                self._open(settings)
        except BaseException:
            self._jvm.stop()
            raise

    def close(self) -> None:
        """End the JVM."""
        self._jvm.stop()

    def contact(self, within_s: float) -> None:
        """Send any request, with its own timeout.

        Raises:
            NoAnswerError: there was no answer in time.
        """
        timeouts = RequestTimeouts(within_s)
        try:
            timeouts.get(lambda: self.get_file_info("/"))
        finally:
            timeouts.close()

    def get_file_info(self, path: str) -> JavaStatus:
        """The status of a file or directory."""
        with _java_errors(self._jvm):
            return self._status(self._files.getFileStatus(self._path(path)))

    def list_status(self, path: str, recursive: bool) -> Iterator[JavaStatus]:
        """The files in a directory, or everything below it with `recursive`."""
        with _java_errors(self._jvm):
            found = self._files.util().listFiles(self._path(path), recursive)
            while found.hasNext():
                yield self._status(found.next())

    def mkdirs(self, path: str, permission: int, create_parent: bool) -> None:
        """Create a directory; it may exist."""
        with _java_errors(self._jvm):
            self._files.mkdir(self._path(path), self._permission(permission), create_parent)

    def rename(self, source: str, target: str, overwrite: bool) -> None:
        """Move a file; never over another one unless `overwrite`."""
        with _java_errors(self._jvm):
            kinds = self._hadoop.fs.Options.Rename
            options = self._array(kinds, [kinds.OVERWRITE if overwrite else kinds.NONE])
            self._files.rename(self._path(source), self._path(target), options)

    def delete(self, path: str, recursive: bool) -> bool:
        """Delete a file or directory; returns whether it existed."""
        try:
            with _java_errors(self._jvm):
                return bool(self._files.delete(self._path(path), recursive))
        except FileNotFoundError:
            return False

    def recover_lease(self, path: str) -> bool:
        """Whether the file is closed now."""
        with _java_errors(self._jvm):
            return bool(self._tree.recoverLease(self._path(path)))

    def create(self, path: str, options: WriteOptions) -> _JavaWriter:
        """Create a file, with its parents."""
        with _java_errors(self._jvm):
            flags, opts = self._hadoop.fs.CreateFlag, self._hadoop.fs.Options.CreateOpts
            enum_set = self._jvm.gateway.jvm.java.util.EnumSet
            wanted = enum_set.of(flags.CREATE, flags.OVERWRITE) if options.overwrite else enum_set.of(flags.CREATE)
            chosen = [opts.perms(self._permission(options.permission)), opts.createParent()]
            return _JavaWriter(self._jvm, self._files.create(self._path(path), wanted, self._array(opts, chosen)))

    def read(self, path: str) -> _JavaReader:
        """Open a file in its current state."""
        length = self.get_file_info(path).length

        def opened() -> Any:
            return self._files.open(self._path(path))

        return _JavaReader(self._jvm, opened, length)

    def _open(self, settings: HdfsSettings) -> None:
        self._hadoop = self._jvm.gateway.jvm.org.apache.hadoop
        conf = self._hadoop.hdfs.HdfsConfiguration()
        own = {"fs.defaultFS": settings.address, "ipc.client.rpc-timeout.ms": str(int(settings.answer_s * 1000))}
        for key, value in {**PROPERTIES, **own, **fastest_name_node_first(settings)}.items():
            conf.set(key, value)
        if settings.namenode_principal:
            # `_HOST` in it means the NameNode's host; Hadoop's client knows which NameNode it talks to.
            conf.set("dfs.namenode.kerberos.principal", settings.namenode_principal)
        if settings.principal:
            self._log_in(settings, conf)
        address = self._jvm.gateway.jvm.java.net.URI(settings.address)
        self._files = self._hadoop.fs.FileContext.getFileContext(address, conf)
        self._tree = self._hadoop.fs.FileSystem.newInstance(address, conf)

    def _log_in(self, settings: HdfsSettings, conf: Any) -> None:
        """Log in. Every failure, from krb5.conf to the keytab, is the same kind of refusal."""
        users = self._hadoop.security.UserGroupInformation
        conf.set("hadoop.security.authentication", "kerberos")
        try:
            with _java_errors(self._jvm):
                users.setConfiguration(conf)
                if settings.keytab:
                    users.loginUserFromKeytab(_with_host(settings.principal), settings.keytab)
        except (JavaRefusal, FileNotFoundError) as error:
            raise JavaRefusal("LoginException", str(error)) from error

    def _path(self, path: str) -> Any:
        return self._hadoop.fs.Path(path)

    def _permission(self, permission: int) -> Any:
        return self._hadoop.fs.permission.FsPermission(f"{permission:o}")

    def _array(self, kind: Any, values: Sequence[Any]) -> Any:
        array = self._jvm.gateway.new_array(kind, len(values))
        for index, value in enumerate(values):
            array[index] = value
        return array

    @staticmethod
    def _status(status: Any) -> JavaStatus:
        path = status.getPath().toUri().getPath()
        return JavaStatus(path, status.getLen(), status.getModificationTime(), status.isDirectory())


class _JavaWriter:
    """An FSDataOutputStream."""

    def __init__(self, jvm: Jvm, stream: Any) -> None:
        self._jvm = jvm
        self._stream = stream

    def write(self, data: bytes | bytearray) -> None:
        with _java_errors(self._jvm):
            self._stream.write(data)

    def close(self) -> None:
        with _java_errors(self._jvm):
            self._stream.close()


class _JavaReader:
    """A file of known length; each piece is read with its own stream."""

    def __init__(self, jvm: Jvm, opened: Callable[[], Any], length: int) -> None:
        self._jvm = jvm
        self._opened = opened
        self._length = length

    def __len__(self) -> int:
        return self._length

    def read_range(self, start: int, length: int) -> bytes:
        with _java_errors(self._jvm):
            stream = self._opened()
            try:
                stream.seek(start)
                data = bytes(stream.readNBytes(length))
            finally:
                stream.close()
        if len(data) != length:
            raise JavaRefusal("EOFException", f"{len(data)} bytes were read instead of {length}")
        return data


class JvmConnection:
    """Shares one JvmClient within a process among users of the same HDFS and login; see `HdfsFiles`."""

    def __init__(self, settings: HdfsSettings, start_jvm: StartJvm | None) -> None:
        """Nothing is started yet.

        Args:
            settings: address and login.
            start_jvm: see `RoleContext`.
        """
        self._settings = settings
        self._start_jvm = start_jvm
        self._client: JvmClient | None = None

    def client(self) -> Any:
        """The client, which lives until every user has called `close`.

        Raises:
            ConfigError, AccessError, UnavailableError, JavaRefusal: it cannot be created.
        """
        with _LOCK:
            if self._client is None:
                self._client = self._shared()
            return self._client

    def close(self) -> None:
        """Release the client; idempotent."""
        with _LOCK:
            if self._client is None:
                return
            self._client = None
            client, users = _CLIENTS.pop(self._key)
            if users > 1:
                _CLIENTS[self._key] = (client, users - 1)
            else:
                client.close()

    @property
    def _key(self) -> tuple[str, ...]:
        own = self._settings
        return (own.address, own.conf_dir, own.principal, own.keytab, own.namenode_principal)

    def _shared(self) -> JvmClient:
        if self._key in _CLIENTS:
            client, users = _CLIENTS[self._key]
        elif self._start_jvm is None:
            raise ConfigError(
                "hdfs.publisher=jvm works only in a driver, because only a driver can start a JVM.",
                code="hdfs.jvm_elsewhere",
                config_path="hdfs.publisher",
                suggestion="Set hdfs.publisher=native if the store is used outside of runs.",
            )
        else:
            client, users = JvmClient(self._settings, self._start_jvm), 0
        _CLIENTS[self._key] = (client, users + 1)
        return client


_LOCK = threading.Lock()
_CLIENTS: dict[tuple[str, ...], tuple[JvmClient, int]] = {}
"""By login: the client and its number of users. A JVM takes a second to start, and has only one login."""


def _with_host(principal: str) -> str:
    """`connect/_HOST@REALM` with this machine's name. Source: SecurityUtil.getServerPrincipal."""
    name, _, rest = principal.partition("/")
    host, at, realm = rest.partition("@")
    return f"{name}/{socket.getfqdn().lower()}@{realm}" if at and host == "_HOST" else principal


@contextmanager
def _java_errors(jvm: Jvm) -> Iterator[None]:
    """Translate Java's exceptions to Python's.

    Raises:
        FileNotFoundError, FileExistsError, JavaRefusal: see `JvmClient`.
        UnavailableError: the JVM has ended.
    """
    from py4j.protocol import Py4JError, Py4JJavaError

    if not jvm.is_running:
        raise _dead("it has ended")
    try:
        yield
    except Py4JJavaError as error:
        raise _read(error.java_exception) from error
    except (Py4JError, ConnectionError) as error:
        raise _dead(str(error).rstrip(".")) from error


def _dead(why: str) -> UnavailableError:
    return UnavailableError(
        f"The JVM with Hadoop's client does not answer: {why}.",
        code="hdfs.jvm",
        suggestion=f"Its messages are in the log above. {NEXT_RUN}",
    )


def _read(thrown: Any) -> Exception:
    """The Python exception for a Java exception, or for its first cause that is more specific."""
    first: JavaRefusal | None = None
    cause = thrown
    for _ in range(_DEPTH):
        name = str(cause.getClass().getName())
        if name == "org.apache.hadoop.ipc.RemoteException":
            name = str(cause.getClassName())
        kind, text = name.rpartition(".")[2].rpartition("$")[2], str(cause.getMessage() or "")
        if kind not in _WRAPPERS:
            return _EXACT[kind](text) if kind in _EXACT else JavaRefusal(kind, text)
        first = first or JavaRefusal(kind, text)
        cause = cause.getCause()
        if cause is None:
            break
    assert first is not None
    return first


_EXACT: dict[str, Callable[[str], Exception]] = {
    "FileNotFoundException": FileNotFoundError,
    "FileAlreadyExistsException": FileExistsError,
}
