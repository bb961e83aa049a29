"""Objects in a bucket. An object that has grown is a new object that begins with the old content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_connect.errors import ConnectError
from airflow_connect.stores.file_system import FoundFile, GoneError
from airflow_connect.stores.s3.http.errors import HttpResponse, error_for
from airflow_connect.stores.s3.http.transport import S3Request, S3Transport
from airflow_connect.stores.s3.requests import S3Requests
from airflow_connect.stores.s3.settings import S3Settings

SCHEME = "s3://"
_GET = ("s3:GetObject",)


class S3FileSystem:
    """One bucket; names are `s3://bucket/key`."""

    identity_is_content = True

    def __init__(self, settings: S3Settings) -> None:
        """No request yet."""
        self.linked_directories: list[str] = []
        self.others: dict[str, str] = {}
        self.unreadable_links: dict[str, ConnectError] = {}
        self._root = f"{SCHEME}{settings.bucket}/"
        self._transport = S3Transport(settings)
        self._requests = S3Requests(self._transport)

    def find(self, name: str) -> FoundFile | None:
        """See `FileSystem`."""
        key = name.removeprefix(self._root)
        # A listing instead of HEAD: its refusals have a body that says what is wrong.
        return next((file for file in self._listed(key) if file.name == name), None)

    def walk(self, directory: str, *, recursive: bool) -> Iterator[FoundFile]:
        """See `FileSystem`; a key that ends with a slash is a directory of a console if it is empty, else a file."""
        prefix = directory.removeprefix(self._root)
        if prefix and not prefix.endswith("/"):
            prefix += "/"
        for file in self._listed(prefix, "" if recursive else "/"):
            if file.size or not file.name.endswith("/"):
                yield file

    def has_directory(self, directory: str) -> bool:
        """See `FileSystem`."""
        return True

    def place(self, name: str) -> tuple[str, bool]:
        """See `FileSystem`; an object has one name."""
        return name, False

    def open(self, file: FoundFile) -> S3Bytes:
        """See `FileSystem`; the first `read_at` detects a deleted object."""
        return S3Bytes(self._transport, file, file.name.removeprefix(self._root), self._requests.customer_key)

    def close(self) -> None:
        """See `FileSystem`."""
        self._transport.close()

    def _listed(self, prefix: str, delimiter: str = "") -> Iterator[FoundFile]:
        for found in self._requests.list_objects(prefix, delimiter):
            yield FoundFile(self._root + found.key, found.size_bytes, found.modified_ms, found.etag)


class S3Bytes:
    """Ranges of one object, in its state when it was found."""

    def __init__(self, transport: S3Transport, file: FoundFile, key: str, more: Mapping[str, str]) -> None:
        """No request yet. `more`: headers of each request."""
        self._transport, self._file, self._key, self._more = transport, file, key, more

    def read_at(self, position: int, size: int) -> bytes:
        """See `FileBytes`."""
        last = min(position + size, self._file.size) - 1
        if last < position:
            return b""
        headers = {"range": f"bytes={position}-{last}", **self._more}
        if self._file.identity:
            headers["if-match"] = f'"{self._file.identity}"'
        expected = last - position + 1

        def cut_off(reply: HttpResponse) -> str:
            return "" if len(reply.body) == expected else f"of {len(reply.body)} bytes instead of {expected}"

        request = S3Request("GetObject", "GET", _GET, self._key, headers=headers, incomplete=cut_off)
        reply, refusal = self._transport.send(request)
        # If the status says success, content that looks like an error document is content.
        if refusal is None or reply.status == 206:
            return reply.body
        if refusal.status in (412, 416) or refusal.is_absence:
            raise GoneError(f"{self._file.name} was replaced or deleted")
        raise error_for(refusal, self._transport.attempted(request))

    def close(self) -> None:
        """Connections belong to the file system."""
