"""The servers that all tests share: one of each kind for a session, however many processes run its tests.

pytest's controller starts a server when a test first asks for it, and ends all of them. Processes of pytest-xdist ask
through a socket in a folder of the session, and get a view: addresses, files, everything but the right to end it. As
the servers are the controller's children, they outlive a process of tests that dies, and end with a controller that is
killed.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import shutil
import tempfile
import threading
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, NoReturn

from airflow_connect.devstack.launching.process import ServerProcess, log_tail
from airflow_connect.jvm.class_data import ClassDataArchive
from tests.support.processes.drivers import is_alive

FOLDER = "servers_folder"
"""Where a process of pytest-xdist finds the session's folder in its `workerinput`."""
Gone = list[tuple[str, str]]
"""Servers that have ended by themselves: name, and the end of the log."""


def _kafka() -> Any:
    from airflow_connect.devstack.kafka import KafkaBroker

    # It is not restarted, so it need not notice quickly that it was killed. On a machine so busy that it sends no
    # heartbeat for three seconds, its controller would take it for dead, and all leaders would change.
    # Tests that kill workers need not wait six seconds for each, the shortest session that a broker allows by default.
    # It has thousands of partitions in the end: looking at all of them every second took a sixth of its CPU time.
    return KafkaBroker.start(
        properties={
            "broker.session.timeout.ms": "60000",
            "group.min.session.timeout.ms": "500",
            "log.retention.check.interval.ms": "10000",
            "log.cleaner.backoff.ms": "2000",
        }
    )


def _s3() -> Any:
    from airflow_connect.devstack.s3 import S3Server

    return S3Server.start()


def _hdfs() -> Any:
    from tests.devstack.hdfs import HdfsCluster

    return HdfsCluster.start()


def _metastore() -> Any:
    from tests.devstack.hive_metastore import HiveMetastore

    return HiveMetastore.start()


def _iceberg_rest() -> Any:
    from tests.devstack.iceberg_rest import IcebergRest

    return IcebergRest.start()


def _registry() -> Any:
    from tests.devstack.schema_registry import SchemaRegistry

    return SchemaRegistry.start()


def _postgresql() -> Any:
    from tests.devstack.postgresql import PostgresServer

    return PostgresServer.start()


def _mariadb() -> Any:
    from tests.devstack.mariadb import MariaDbServer

    return MariaDbServer.start()


def _opensearch() -> Any:
    from tests.devstack.opensearch import OpenSearchServer

    return OpenSearchServer.start()


KINDS: dict[str, Callable[[], Any]] = {
    "kafka": _kafka,
    "upstream_kafka": _kafka,
    "s3": _s3,
    "hdfs": _hdfs,
    "metastore": _metastore,
    "iceberg_rest": _iceberg_rest,
    "registry": _registry,
    "postgresql": _postgresql,
    "mariadb": _mariadb,
    "opensearch": _opensearch,
}


class SharedProcess:
    """A server's process in the view of who only uses it."""

    def __init__(self, pid: int) -> None:
        """`pid`: of the server."""
        self.pid = pid

    @property
    def is_running(self) -> bool:
        """Whether it is alive."""
        return is_alive(self.pid)

    def stop(self) -> NoReturn:
        """Refuse: others use it."""
        raise AssertionError("This server is shared by all tests: a test that ends or restarts one starts its own.")

    kill = stop


class _ViewPickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ServerProcess):
            return SharedProcess, (obj.pid,)
        if isinstance(obj, ClassDataArchive):
            return type(None), ()
        return NotImplemented


def view_of(server: Any) -> bytes:
    """A server as others see it, pickled."""
    out = io.BytesIO()
    _ViewPickler(out).dump(server)
    return out.getvalue()


class ServerHost:
    """Owns the servers of a session."""

    def __init__(self) -> None:
        """Make the session's folder; nothing runs yet."""
        self.folder = Path(tempfile.mkdtemp(prefix="connect-tests-"))
        self._locks = {kind: threading.Lock() for kind in KINDS}
        self._running: dict[str, Any] = {}
        self._is_closed = False
        self._listener: Listener | None = None

    def get(self, kind: str) -> Any:
        """A view of the server of this kind, which starts if it is the first to be asked for."""
        return pickle.loads(self._view(kind))

    def gone(self) -> Gone:
        """Servers that have ended by themselves."""
        parts = [part for server in list(self._running.values()) for part in _parts(server)]
        # The guard of a server learns of its end a moment later.
        found = [part for part in parts if not part.is_running or not is_alive(part.pid)]
        return [(part.name, log_tail(part.log_path)) for part in found]

    def listen(self) -> None:
        """Answer the processes of pytest-xdist; may be called for each of them."""
        if self._listener is not None:
            return
        self._listener = Listener(str(self.folder / "socket"), "AF_UNIX", backlog=64)
        threading.Thread(target=self._accept, name="test-servers", daemon=True).start()

    def close(self) -> None:
        """End every server and remove the folder. Whoever asks from now on gets an error."""
        self._is_closed = True
        if self._listener is not None:
            self._listener.close()
        for kind, lock in self._locks.items():
            with lock:  # one that starts just now is waited for
                server = self._running.pop(kind, None)
                if server is not None:
                    _end(kind, server)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _view(self, kind: str) -> bytes:
        with self._locks[kind]:
            assert not self._is_closed, "the session is over"
            if kind not in self._running:
                self._running[kind] = KINDS[kind]()
            return view_of(self._running[kind])

    def _accept(self) -> None:
        assert self._listener is not None
        while not self._is_closed:
            with contextlib.suppress(OSError, EOFError):  # closed, or a client that is gone already
                connection = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        with connection, contextlib.suppress(EOFError, OSError):
            question = connection.recv()
            try:
                answer: Any = self.gone() if question is None else self._view(question)
            except BaseException as error:  # noqa: BLE001 (raised where the server was asked for)
                answer = error
            connection.send(answer)


class ServerClient:
    """The same servers from a process of pytest-xdist."""

    def __init__(self, folder: Path) -> None:
        """`folder`: of the session."""
        self.folder = folder

    def get(self, kind: str) -> Any:
        """A view of the server of this kind, which starts if it is the first to be asked for."""
        return pickle.loads(self._ask(kind))

    def gone(self) -> Gone:
        """Servers that have ended by themselves."""
        found: Gone = self._ask(None)
        return found

    def close(self) -> None:
        """Nothing: the controller ends the servers."""

    def _ask(self, question: str | None) -> Any:
        with Client(str(self.folder / "socket"), "AF_UNIX") as connection:
            connection.send(question)
            answer = connection.recv()
        if isinstance(answer, BaseException):
            raise answer
        return answer


def _parts(server: Any) -> list[Any]:
    """The processes of a server, of which a cluster has several."""
    return [server.namenode, *server.datanodes] if hasattr(server, "namenode") else [server]


def _end(kind: str, server: Any) -> None:
    if kind in ("kafka", "upstream_kafka"):
        # Told to end in order, it would first write a snapshot for each of a session's thousand topics, which takes
        # most of a minute.
        server.kill()
    (getattr(server, "discard", None) or server.stop)()
