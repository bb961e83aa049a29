"""Files in HDFS, through a client without Java (hdfs-native)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from airflow_connect.api.errors import AccessError, ConfigError, UnavailableError, missing_package
from airflow_connect.connectors.file_source.places.place import FoundFile, GoneError
from airflow_connect.stores.hdfs_answers import AnsweringClient

SCHEME = "hdfs://"
_REFUSED = ("AccessControlException", "Permission denied", "SaslException", "GSS")


class HdfsPlace:
    """One name service; names are `hdfs://host:port/path`."""

    identity_is_content = False

    def __init__(self, root: str, conf_dir: str = "") -> None:
        """Load the client; nothing is sent yet.

        Args:
            root: `hdfs://host:port` or `hdfs://nameservice`.
            conf_dir: folder with core-site.xml and hdfs-site.xml; "" follows HADOOP_CONF_DIR.

        Raises:
            MissingPackageError: the client is not installed.
            ConfigError: the client does not accept the address.
        """
        try:
            from hdfs_native import Client
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
            self._client: Any = AnsweringClient(Client(root, config_dir=conf_dir or None))
        except Exception as error:
            raise ConfigError(
                f"{root} is no HDFS that can be reached: {error}.",
                config_path="file",
                suggestion="Write hdfs://host:port, or name the folder of core-site.xml and hdfs-site.xml in"
                " hadoop.conf.dir.",
            ) from error

    def find(self, name: str) -> FoundFile | None:
        """See `Place`."""
        try:
            status = self._client.get_file_info(self._path(name))
        except FileNotFoundError:
            return None
        except Exception as error:
            raise _failed(name, error) from error
        return None if status.isdir else self._found(name, status)

    def walk(self, directory: str, *, recursive: bool) -> Iterator[FoundFile]:
        """See `Place`."""
        try:
            statuses = list(self._client.list_status(self._path(directory) or "/", recursive))
        except FileNotFoundError:
            return
        except Exception as error:
            raise _failed(directory, error) from error
        for status in sorted(statuses, key=lambda status: str(status.path)):
            if not status.isdir:
                yield self._found(self._root + urlsplit(status.path).path, status)

    def open(self, file: FoundFile) -> HdfsBytes:
        """See `Place`; the blocks are asked for now."""
        try:
            status = self._client.get_file_info(self._path(file.name))
            reader = self._client.read(self._path(file.name))
        except FileNotFoundError as error:
            raise GoneError(f"{file.name} is no longer there") from error
        except Exception as error:
            raise _failed(file.name, error) from error
        # HDFS tells no inode; a file that is shorter than planned cannot be the one.
        if status.length < file.size:
            raise GoneError(f"another file has taken the place of {file.name}")
        return HdfsBytes(file, reader)

    def close(self) -> None:
        """The client closes its connections itself."""
        self._client.close()

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
        """The reader holds nothing that must be released."""


def _failed(name: str, error: Exception) -> AccessError | UnavailableError:
    """What hdfs-native raised as an error of ours; its messages begin with the name of Java's exception."""
    reason = str(error).strip().rstrip(".")
    if isinstance(error, PermissionError) or any(word in reason for word in _REFUSED):
        return AccessError(
            f"HDFS does not let read {name}: {reason}.",
            code="file.denied",
            config_path="file",
            suggestion="Let the user that runs the executors read it.",
        )
    return UnavailableError(
        f"{name} cannot be read from HDFS: {reason}.",
        code="file.unreadable",
        suggestion="The next run tries again from the committed offset.",
    )
