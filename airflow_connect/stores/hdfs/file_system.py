"""Files in HDFS, through a client without Java (hdfs-native)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from airflow_connect.errors import AccessError, ConfigError, ConnectError, UnavailableError, missing_package
from airflow_connect.stores.file_system import FoundFile, GoneError
from airflow_connect.stores.hdfs.contact import fastest_name_node_first, native_client
from airflow_connect.stores.hdfs.request_timeouts import TimeoutClient
from airflow_connect.stores.hdfs.settings import HdfsSettings

SCHEME = "hdfs://"
_REFUSED = ("AccessControlException", "Permission denied", "SaslException", "GSS")


class HdfsFileSystem:
    """One name service; names are `hdfs://host:port/path`."""

    identity_is_content = False

    def __init__(self, root: str, conf_dir: str = "") -> None:
        """Load the client; nothing is sent yet.

        Args:
            root: `hdfs://host:port` or `hdfs://nameservice`.
            conf_dir: folder with core-site.xml and hdfs-site.xml; "" means HADOOP_CONF_DIR.

        Raises:
            MissingPackageError: the client is not installed.
            ConfigError: the client does not accept the address.
        """
        self.linked_directories: list[str] = []
        self.others: dict[str, str] = {}
        self.unreadable_links: dict[str, ConnectError] = {}
        try:
            import hdfs_native  # noqa: F401
        except ImportError as error:
            raise missing_package(
                "hdfs-native",
                "hdfs",
                purpose=f"Reading files at {root}",
                where="where the driver and the executors run",
                config_path="file",
            ) from error
        self._root = root
        try:
            self._settings = HdfsSettings(root, conf_dir=conf_dir)
            self._native: Any = native_client(self._settings, {})
        except Exception as error:
            raise ConfigError(
                f"{root} is not a reachable HDFS: {error}.",
                config_path="file",
                suggestion="Write hdfs://host:port, or specify the folder of core-site.xml and hdfs-site.xml in"
                " hadoop.conf.dir.",
            ) from error
        self._asked: TimeoutClient | None = None

    def find(self, name: str) -> FoundFile | None:
        """See `FileSystem`."""
        try:
            status = self._client(is_first=True).get_file_info(self._path(name))
        except FileNotFoundError:
            return None
        except Exception as error:
            raise _failed(name, error) from error
        return None if status.isdir else self._found(name, status)

    def walk(self, directory: str, *, recursive: bool) -> Iterator[FoundFile]:
        """See `FileSystem`."""
        try:
            statuses = list(self._client(is_first=True).list_status(self._path(directory) or "/", recursive))
        except FileNotFoundError:
            return
        except Exception as error:
            raise _failed(directory, error) from error
        for status in sorted(statuses, key=lambda status: str(status.path)):
            if not status.isdir:
                yield self._found(self._root + urlsplit(status.path).path, status)

    def has_directory(self, directory: str) -> bool:
        """See `FileSystem`."""
        try:
            return bool(self._client(is_first=True).get_file_info(self._path(directory).rstrip("/") or "/").isdir)
        except FileNotFoundError:
            return False
        except Exception as error:
            raise _failed(directory, error) from error

    def place(self, name: str) -> tuple[str, bool]:
        """See `FileSystem`; HDFS has no links."""
        return name, False

    def open(self, file: FoundFile) -> HdfsBytes:
        """See `FileSystem`; the block locations are fetched now."""
        try:
            client = self._client(is_first=False)
            status = client.get_file_info(self._path(file.name))
            reader = client.read(self._path(file.name))
        except FileNotFoundError as error:
            raise GoneError(f"{file.name} no longer exists") from error
        except Exception as error:
            raise _failed(file.name, error) from error
        # HDFS does not report inodes, but a file that is shorter than planned cannot be the same one.
        if status.length < file.size:
            raise GoneError(f"another file has replaced {file.name}")
        return HdfsBytes(file, reader)

    def close(self) -> None:
        """The client closes its connections itself."""
        if self._asked is not None:
            self._asked.close()

    def _client(self, *, is_first: bool) -> TimeoutClient:
        """The client, with NameNodes that answer ordered before those that do not.

        `is_first`: true when the driver lists files, so that a wrong address fails soon; false when a task reads them.
        """
        if self._asked is None:
            order = fastest_name_node_first(self._settings)
            self._asked = TimeoutClient(native_client(self._settings, order) if order else self._native)
            if is_first:
                self._asked.contact(self._settings.first_answer_s)
        return self._asked

    def _path(self, name: str) -> str:
        return name.removeprefix(self._root)

    def _found(self, name: str, status: Any) -> FoundFile:
        return FoundFile(name, status.length, status.modification_time)


class HdfsBytes:
    """An open file in HDFS."""

    def __init__(self, file: FoundFile, reader: Any) -> None:
        """`reader` knows the file's blocks."""
        self._file, self._reader = file, reader

    def read_at(self, position: int, size: int) -> bytes:
        """See `FileBytes`."""
        wanted = min(size, self._file.size - position)
        if wanted <= 0:
            return b""
        try:
            return bytes(self._reader.read_range(position, wanted))
        except FileNotFoundError as error:
            raise GoneError(f"{self._file.name} was deleted") from error
        except Exception as error:
            raise _failed(self._file.name, error) from error

    def close(self) -> None:
        """Nothing to release."""


def _failed(name: str, error: Exception) -> AccessError | UnavailableError:
    """Our error for an exception of hdfs-native, whose message begins with the name of Java's exception."""
    reason = str(error).strip().rstrip(".")
    if isinstance(error, PermissionError) or any(word in reason for word in _REFUSED):
        return AccessError(
            f"HDFS denies reading {name}: {reason}.",
            code="file.denied",
            config_path="file",
            suggestion="Give the user that runs the executors permission to read it.",
        )
    return UnavailableError(
        f"{name} cannot be read from HDFS: {reason}.",
        code="file.unreadable",
        suggestion="The next run resumes from the committed offset.",
    )
