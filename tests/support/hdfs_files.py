"""What an HDFS holds, seen by another client than the store's."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from hdfs_native import Client

    from tests.devstack.hdfs import HdfsCluster


@cache
def client(address: str) -> Client:
    """A client for `hdfs://host:port`."""
    from hdfs_native import Client

    return Client(address)


def split(url: str) -> tuple[Client, str]:
    """Client and path of a URL."""
    address, path = url[: url.index("/", len("hdfs://"))], url[url.index("/", len("hdfs://")) :]
    assert urlsplit(address).port
    return client(address), path


def put(url: str, data: bytes) -> None:
    """Write a file, replacing what is there."""
    from hdfs_native import WriteOptions

    hdfs, path = split(url)
    with hdfs.create(path, WriteOptions(overwrite=True)) as file:
        file.write(data)


def get(url: str) -> bytes:
    """The content of a file."""
    hdfs, path = split(url)
    return bytes(hdfs.read(path).read())


def listed(url: str) -> dict[str, tuple[str, str]]:
    """Every file below a directory, what is staged too: path relative to it -> size and time of last change."""
    hdfs, base = split(url)
    while True:
        try:
            found = list(hdfs.list_status(base, True))
        except FileNotFoundError:
            if not exists(url):
                return {}
        else:
            below = f"{base.rstrip('/')}/"
            return {f.path.removeprefix(below): (str(f.length), str(f.modification_time)) for f in found if not f.isdir}


def exists(url: str) -> bool:
    """Whether a file or directory is there."""
    hdfs, path = split(url)
    try:
        hdfs.get_file_info(path)
    except FileNotFoundError:
        return False
    return True


def all_files(url: str) -> dict[str, int]:
    """Every file below a directory, what is staged too: path relative to it -> size."""
    return {name: int(size) for name, (size, _) in listed(url).items()}


def visible_files(url: str) -> dict[str, bytes]:
    """Every file below a directory that is not below a `+tmp` -> content."""
    hdfs, base = split(url)
    names = [name for name in all_files(url) if "+tmp" not in name.split("/")]
    return {name: bytes(hdfs.read(f"{base}/{name}").read()) for name in names}


def wait_until_full(cluster: HdfsCluster) -> None:
    """Return when the NameNode knows that no DataNode has room."""
    wait_until(lambda: cluster.metrics()["CapacityRemaining"] == 0, "the NameNode knows that there is no room", 90)
