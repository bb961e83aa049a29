"""Files with the same path on driver and executors: a local disk with `local[...]`, otherwise a shared mount."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from urllib.parse import unquote

from airflow_connect.errors import ConnectError
from airflow_connect.stores.file_system import FoundFile, GoneError, changed_meanwhile, unreadable

SCHEME = "file://"
_LEADS_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""What the system says about a link without a file. After any other error the file may be there."""


def path_of(name: str) -> str:
    """The path of a name: the name itself, or what a `file://` URL means, without its escapes (RFC 8089)."""
    if not name.startswith(SCHEME):
        return name
    return unquote(name.removeprefix(SCHEME).removeprefix("localhost"))


def host_of(name: str) -> str:
    """The host in a `file://` URL, "" if it is this machine."""
    host = name.removeprefix(SCHEME).partition("/")[0] if name.startswith(SCHEME) else ""
    return "" if host == "localhost" else host


def kind_of(mode: int) -> str:
    """What an entry of a directory is, from its mode, if it is not a file."""
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


class LocalFileSystem:
    """The file system of this machine."""

    identity_is_content = False

    def __init__(self) -> None:
        """Nothing is open."""
        self.linked_directories: list[str] = []
        self.others: dict[str, str] = {}
        self.unreadable_links: dict[str, ConnectError] = {}

    def find(self, name: str) -> FoundFile | None:
        """See `FileSystem`; `open` rejects anything but regular files."""
        try:
            return _found(name, os.stat(path_of(name)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise unreadable(name, error) from error

    def walk(self, directory: str, *, recursive: bool) -> Iterator[FoundFile]:
        """See `FileSystem`; symbolic links to directories are not followed."""
        try:
            entries = sorted(os.scandir(path_of(directory) or "."), key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise unreadable(directory, error) from error
        prefix = directory if not directory or directory.endswith("/") else directory + "/"
        is_url = directory.startswith(SCHEME)
        for entry in entries:
            # Only the character that begins an escape: other names stay what they were in committed offsets.
            name = prefix + (entry.name.replace("%", "%25") if is_url else entry.name)
            try:
                if recursive and entry.is_dir(follow_symlinks=False):
                    yield from self.walk(name, recursive=True)
                    continue
                status = entry.stat()
            except OSError as error:
                if not entry.is_symlink():
                    if not isinstance(error, FileNotFoundError):  # deleted since the directory was read
                        raise unreadable(name, error) from error
                elif error.errno in _LEADS_NOWHERE:
                    self.others[name] = f"a link that leads to no file ({error.strerror})"
                else:
                    self.unreadable_links[name] = unreadable(name, error)
                continue
            if recursive and stat.S_ISDIR(status.st_mode):
                self.linked_directories.append(name)
            elif stat.S_ISREG(status.st_mode):
                yield _found(name, status)
            else:
                self.others[name] = kind_of(status.st_mode)

    def has_directory(self, directory: str) -> bool:
        """See `FileSystem`."""
        return os.path.isdir(path_of(directory) or ".")

    def place(self, name: str) -> tuple[str, bool]:
        """See `FileSystem`: device and inode."""
        path = path_of(name)
        try:
            status = os.stat(path)
        except OSError:
            return name, False  # deleted since it was listed
        return f"{status.st_dev}:{status.st_ino}", os.path.islink(path)

    def open(self, file: FoundFile) -> LocalBytes:
        """See `FileSystem`. Reads stay on the same file, even if it is renamed or deleted meanwhile."""
        try:
            descriptor = os.open(path_of(file.name), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError as error:
            raise GoneError(f"{file.name} no longer exists") from error
        except OSError as error:
            raise unreadable(file.name, error) from error
        now = os.fstat(descriptor)
        if not stat.S_ISREG(now.st_mode):
            os.close(descriptor)
            raise unreadable(file.name, OSError(0, "it is not a regular file"))
        if file.identity and file.identity != str(now.st_ino):
            os.close(descriptor)
            raise GoneError(f"another file has replaced {file.name}")
        if now.st_size < file.size:
            os.close(descriptor)
            raise GoneError(f"{file.name} was truncated or written again since this run was planned")
        return LocalBytes(file.name, descriptor, file.size)

    def close(self) -> None:
        """Nothing is kept open."""


class LocalBytes:
    """An open file of this machine."""

    def __init__(self, name: str, descriptor: int, size: int) -> None:
        """`descriptor` is closed by `close`; `size`: bytes that the file had when it was opened, or a part of them."""
        self._name, self._descriptor, self._size = name, descriptor, size

    def read_at(self, position: int, size: int) -> bytes:
        """See `FileBytes`. Files only grow: bytes of one that has become smaller may be those of the next content."""
        try:
            data = os.pread(self._descriptor, size, position)
            now = os.fstat(self._descriptor).st_size
        except OSError as error:
            raise unreadable(self._name, error) from error
        if now < self._size:
            raise changed_meanwhile(f"{self._name} has {now} bytes, and had {self._size} bytes before")
        return data

    def close(self) -> None:
        """See `FileBytes`. Idempotent: the descriptor's number may belong to another file by now."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _found(name: str, status: os.stat_result) -> FoundFile:
    modified_ms, nanoseconds = divmod(status.st_mtime_ns, 1_000_000)
    return FoundFile(name, status.st_size, modified_ms, str(status.st_ino), nanoseconds)
