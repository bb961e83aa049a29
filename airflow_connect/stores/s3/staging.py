"""Executor side of the S3 store: files that grow in unfinished multipart uploads. Nothing here can publish.

The state of the two sides is kept apart: `S3StagingFile` belongs to the task's thread and holds the bytes not yet
handed over; `_Upload` is shared with the pool's threads and guarded by its lock.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from airflow_connect.api.staging import StagedFile
from airflow_connect.errors import AuditError, ConfigError, ConnectError
from airflow_connect.formats.spill import SpillBuffer
from airflow_connect.stores.byte_gate import ByteGate
from airflow_connect.stores.s3.etag import object_metadata
from airflow_connect.stores.s3.http.transport import S3Transport
from airflow_connect.stores.s3.requests import S3Requests
from airflow_connect.stores.s3.settings import S3Settings
from airflow_connect.stores.staging import BufferedFile, StagingThreads, resolve
from airflow_connect.stores.store import POSSIBLE_DUPLICATE, FileIdentity

log = logging.getLogger(__name__)

MAX_PARTS = 10_000
"""S3's limit on the parts of one object."""


class _Upload:
    """The server's side of one staged file: upload id, parts, and the first failure."""

    def __init__(self, requests: S3Requests, identity: FileIdentity, run_id: str) -> None:
        self._requests = requests
        self._identity = identity
        self._run_id = run_id
        self._file_id = os.urandom(8).hex()
        self._lock = threading.Lock()
        self._creation = threading.Lock()
        self._upload_id = ""
        self._etags: dict[int, str] = {}
        self._sent = 0
        self._pending = 0
        self._parts = 0
        self._size = 0
        self._end: int | None = None
        self._records: int | None = None
        self._has_all_parts = False
        self._is_aborted = False
        self.failure: BaseException | None = None
        self.result: Future[StagedFile] = Future()

    def expect_part(self) -> None:
        """Count a part before it is handed to the pool."""
        with self._lock:
            self._pending += 1
            self._parts += 1

    def expect_end(self, end: int, records: int, size_bytes: int) -> None:
        """Record offsets, count and size before the last part is handed over.

        A file with a single part has offsets and count in its metadata; the sizes of all parts must add up to the size.
        """
        with self._lock:
            self._end, self._records, self._size = end, records, size_bytes

    def expect_no_more(self) -> None:
        """Declare that every part has been counted: the upload is finished once none is pending.

        To be called only after the last part was counted. While that one waits for room, the parts before it may end; a
        file resolved at that moment would lose its end.
        """
        with self._lock:
            self._has_all_parts = True
        self.settle()

    def run_part(self, number: int, body: SpillBuffer) -> None:
        """Upload one part, in a thread of the pool."""
        try:
            if not self._is_aborted and self.failure is None:
                data = body.read_all()
                upload_id = self._created()
                etag = self._requests.upload_part(self._identity.key, upload_id, number, data)
                with self._lock:
                    self._etags[number] = etag
                    self._sent += len(data)
        except Exception as error:  # noqa: BLE001 (raised again in the task's thread, by `result`)
            with self._lock:
                self.failure = self.failure or error
        finally:
            body.close()
            with self._lock:
                self._pending -= 1
            self.settle()

    def settle(self) -> None:
        """Resolve the result, or clean up, once nothing is pending."""
        with self._lock:
            if self._pending or not (self._has_all_parts or self._is_aborted):
                return
            is_aborted, upload_id = self._is_aborted, self._upload_id
            if is_aborted:
                self._upload_id = ""
            elif not self.result.done():
                resolve(self.result, self._staged)
        if is_aborted and upload_id:
            self._discard(upload_id)

    def _check_sums(self) -> None:
        """Invariant 7 for bytes: the parts hold exactly what the encoder wrote."""
        if self._sent != self._size or sorted(self._etags) != list(range(1, self._parts + 1)):
            raise AuditError(
                f"{self._identity.key} was written as {self._size} bytes in {self._parts} parts, but {self._sent} "
                f"bytes in {len(self._etags)} parts were uploaded; nothing of it was published.",
                suggestion="No offset was moved. Run again; if it happens again, report it with this message.",
            )

    def abort(self) -> bool:
        """Abandon the file; returns whether `settle` must be called by a thread that may block."""
        with self._lock:
            self._is_aborted = True
            self.result.cancel()
            return not self._pending and bool(self._upload_id)

    def _created(self) -> str:
        # Parts of one file wait here for its first part; parts of other files do not.
        with self._creation:
            if not self._upload_id:
                identity = self._identity
                headers = {}
                if identity.content_type:
                    headers["content-type"] = identity.content_type
                if identity.content_encoding:
                    headers["content-encoding"] = identity.content_encoding
                metadata = object_metadata(self._run_id, self._file_id, identity.start, self._end, self._records)
                self._upload_id = self._requests.create_upload(identity.key, headers, metadata)
                self._requests.check_key_is_kept(identity.key, self._upload_id)
            return self._upload_id

    def _staged(self) -> StagedFile:
        if self.failure is not None:
            raise self.failure
        self._check_sums()
        assert self._end is not None and self._records is not None
        parts = [[number, self._etags[number]] for number in sorted(self._etags)]
        token: dict[str, Any] = {"upload_id": self._upload_id, "parts": parts, "file_id": self._file_id}
        if self._requests.possible_duplicates:
            token[POSSIBLE_DUPLICATE] = True
        # The key was fixed when the upload was created.
        return self._identity.staged(self._identity.key, self._end, self._records, self._size, token)

    def _discard(self, upload_id: str) -> None:
        try:
            self._requests.abort_upload(self._identity.key, upload_id)
        except ConnectError as error:
            # The task is failing already, and this error must not hide why; the next run's sweep finds the
            # upload.
            log.warning("A staged upload of %s stays until the next sweep: %s", self._identity.key, error)


class S3StagingFile(BufferedFile):
    """An open file. Used by one thread; parts go up on the stager's threads."""

    def __init__(self, stager: S3Stager, identity: FileIdentity) -> None:
        """Created by `S3Stager.open`."""
        super().__init__(identity)
        self._stager = stager
        self._upload = _Upload(stager.requests, identity, stager.run_id)
        self._part_size = stager.settings.part_size_bytes
        self._parts = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes; a full part is handed to the upload threads. Blocks while too much is queued.

        Raises:
            UnavailableError, AccessError, ConfigError: an earlier part could not be uploaded.
        """
        self._check_open(self._upload.failure)
        with memoryview(data) as view, view.cast("B") as rest:
            self._written += len(rest)
            done = 0
            while done < len(rest):
                part = rest[done : done + self._part_size - len(self._buffer)]
                self._buffer.append(part)
                done += len(part)
                if len(self._buffer) == self._part_size:
                    self._hand_over()

    def close(self, end: int, records: int) -> Future[StagedFile]:
        """Upload the rest; the future completes when all bytes are on the server, or with the first error."""
        self._check_open(self._upload.failure)
        self._is_closed = True
        self._upload.expect_end(end, records, self._written)
        if len(self._buffer) or not self._parts:
            self._hand_over()
        self._upload.expect_no_more()
        return self._upload.result

    def abort(self) -> None:
        """Discard everything, even after `close`; does not wait (`S3Stager.close` does). Idempotent."""
        self._drop()
        if self._upload.abort():
            self._stager.submit(self._upload.settle)

    def _hand_over(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise ConfigError(
                f"{self._identity.key} needs more than {MAX_PARTS} parts of {self._part_size} bytes.",
                code="s3.too_many_parts",
                config_path="s3.part.size",
                suggestion="Raise s3.part.size, or let files rotate earlier.",
            )
        self._stager.submit_part(self._upload, self._parts, self._take())


class S3Stager:
    """Executor role of the S3 store. `open` and the files are used by one thread."""

    def __init__(self, settings: S3Settings, run_id: str, transport: S3Transport | None = None) -> None:
        """Nothing is sent before the first part.

        Args:
            settings: the bucket.
            run_id: written into every object's metadata.
            transport: default: a new one from `settings`.
        """
        self.settings = settings
        self.run_id = run_id
        self._transport = transport or S3Transport(settings)
        self.requests = S3Requests(self._transport)
        self._gate = ByteGate(settings.upload_buffer_bytes)
        self._threads = StagingThreads(settings.upload_threads, "s3-upload")

    def open(self, identity: FileIdentity) -> S3StagingFile:
        """Start a file; no request."""
        return S3StagingFile(self, identity)

    def close(self) -> None:
        """Wait for pending uploads and aborts, with a time limit, then release threads and connections; idempotent."""
        self._threads.close()
        self._transport.close()

    def submit(self, work: Callable[[], None]) -> None:
        """Run `work` on an upload thread."""
        self._threads.submit(work)

    def submit_part(self, upload: _Upload, number: int, body: SpillBuffer) -> None:
        """Queue one part; blocks while `upload_buffer_bytes` are queued."""
        size = len(body)  # Spilled bytes count too: a part is read completely before it is sent.
        self._gate.enter(size)
        upload.expect_part()

        def run() -> None:
            try:
                upload.run_part(number, body)
            finally:
                self._gate.leave(size)

        self._threads.submit(run)
