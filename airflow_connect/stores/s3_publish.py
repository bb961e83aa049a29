"""Driver side of the S3 store: complete staged uploads idempotently, discard or list the others.

Failure stories that the order of checks answers:
1. The reply to Complete was lost. It is repeated: 412 or 404 now, and HEAD shows our object: already
   published.
2. A lifecycle rule aborted the upload. Complete says NoSuchUpload and HEAD finds nothing: lost, to be copied
   again.
3. Somebody else wrote the key. 412, and HEAD shows a stranger: a conflict for people; nothing is overwritten.
4. A run that was thought dead publishes again, late. As 1: the same bytes stay where they are.
MinIO answers 404 to a repeated Complete, Amazon 200 for a while, s3proxy 200: all three end in the same
outcome.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from airflow_connect.api.errors import ConnectError, PublishConflictError, UnavailableError
from airflow_connect.api.run import StagedFile
from airflow_connect.stores.publishing import publish_each, refuse_equal_keys
from airflow_connect.stores.s3_errors import (
    NO_SUCH_BUCKET,
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    Refusal,
    error_for,
)
from airflow_connect.stores.s3_etag import FILE_ID, is_same_object, parts_of
from airflow_connect.stores.s3_preflight import check_bucket
from airflow_connect.stores.s3_requests import PUBLISH_RETRIES, ObjectFacts, S3Requests
from airflow_connect.stores.s3_settings import S3Settings
from airflow_connect.stores.s3_transport import S3Transport
from airflow_connect.stores.store import LeftOver, Outcome

log = logging.getLogger(__name__)

LOOKS_BEFORE_LOST = 3
"""Where another publisher is just completing the same upload, it can be gone before its object can be seen."""


class S3Publisher:
    """Driver role of the S3 store; safe to use from several threads and several processes at once."""

    def __init__(self, settings: S3Settings, probe_prefix: str = "", transport: S3Transport | None = None) -> None:
        """Nothing is sent yet.

        Args:
            settings: the bucket.
            probe_prefix: key prefix under which `preflight` tries to write, with the delimiter at its end.
            transport: default: a new one from `settings`.
        """
        self._settings = settings
        self._probe_prefix = probe_prefix
        self._transport = transport or S3Transport(settings)
        self._requests = S3Requests(self._transport)
        # Some look-alikes do not know If-None-Match on Complete; one 501 is enough to stop asking.
        self._server_checks_absence = settings.conditional_writes

    @property
    def may_have_twins(self) -> bool:
        """Whether the preflight's upload may have been made twice."""
        return self._requests.may_have_twins

    def preflight(self) -> None:
        """Check address, credentials, bucket, region and permissions, with four requests.

        Raises:
            AccessError, ConfigError, UnavailableError: with what is missing.
        """
        check_bucket(self._requests, self._probe_prefix)

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Complete the uploads of `files`, in parallel; a conflict does not keep the others from being published.

        Raises:
            PublishConflictError: names the first key and how many there are.
            UnavailableError, AccessError, ConfigError: publishing again continues where this ended.
        """
        refuse_equal_keys(files)
        with ThreadPoolExecutor(self._settings.publish_threads, thread_name_prefix="s3-publish") as pool:
            outcomes = publish_each(files, self._publish_one, progress, pool).checked("keys hold other objects")
        self._tag(files, outcomes)
        return outcomes

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        """Abort the uploads of `files`, in parallel.

        Idempotent. Published objects stay. Returns how many existed.
        """
        uploads = [(file.key, str(file.token["upload_id"])) for file in files]
        with ThreadPoolExecutor(self._settings.publish_threads, thread_name_prefix="s3-abort") as pool:
            return sum(pool.map(lambda upload: self._requests.abort_upload(*upload), uploads))

    def list_staged(self, prefixes: Iterable[str]) -> Iterator[LeftOver]:
        """Unfinished uploads whose keys start with one of `prefixes`, each once.

        On MinIO a prefix finds only uploads whose key equals it; give whole keys there.
        """
        seen: set[tuple[str, str]] = set()
        for prefix in prefixes:
            for upload in self._requests.list_uploads(prefix):
                identity = (upload.key, upload.upload_id)
                if upload.key.startswith(prefix) and identity not in seen:
                    seen.add(identity)
                    yield LeftOver(upload.key, {"upload_id": upload.upload_id}, upload.started_ms)

    def mark(self, keys: Sequence[str]) -> None:
        """Put an empty object under each key, in parallel."""
        with ThreadPoolExecutor(self._settings.publish_threads, thread_name_prefix="s3-mark") as pool:
            for _ in pool.map(self._requests.put_empty, keys):
                pass

    def close(self) -> None:
        """Release connections; idempotent."""
        self._transport.close()

    def _publish_one(self, file: StagedFile) -> Outcome:
        if self._settings.conditional_writes and not self._server_checks_absence:
            return self._publish_after_look(file)
        pauses = self._transport.retry.at_least(PUBLISH_RETRIES).pauses_s()
        looks = 0
        while True:
            refusal = self._complete(file, only_if_absent=self._settings.conditional_writes)
            if refusal is None:
                return Outcome.PUBLISHED
            if refusal.status == 501 or refusal.code == NOT_IMPLEMENTED:
                self._server_checks_absence = False
                return self._publish_after_look(file)
            is_gone = _is_upload_gone(refusal)
            # 409: another Complete of this key is under way. 412 without an object: it was deleted since.
            if not is_gone and not _is_decided_by_others(refusal):
                raise error_for(refusal, self._requests.completing(file.key))
            if self._is_already_there(file):
                return Outcome.ALREADY_PUBLISHED
            looks += 1
            if is_gone and looks == LOOKS_BEFORE_LOST:
                return Outcome.LOST
            pause = next(pauses, None)
            if pause is None:
                raise UnavailableError(f"{self._place(file.key)} could not be published: {refusal}.", code="s3.busy")
            self._transport.wait(pause)

    def _publish_after_look(self, file: StagedFile) -> Outcome:
        """For servers without conditional writes.

        The look and the write are two steps, which fencing makes safe.
        """
        if self._is_already_there(file):
            return Outcome.ALREADY_PUBLISHED
        refusal = self._complete(file, only_if_absent=False)
        if refusal is None:
            return Outcome.PUBLISHED
        if not _is_upload_gone(refusal):
            raise error_for(refusal, self._requests.completing(file.key))
        return Outcome.ALREADY_PUBLISHED if self._is_already_there(file) else Outcome.LOST

    def _complete(self, file: StagedFile, *, only_if_absent: bool) -> Refusal | None:
        upload_id = str(file.token["upload_id"])
        return self._requests.complete_upload(file.key, upload_id, parts_of(file), only_if_absent=only_if_absent)

    def _is_already_there(self, file: StagedFile) -> bool:
        """Whether the object is published; False when the key is free.

        Raises:
            PublishConflictError: the key holds another object.
        """
        found = self._requests.head_object(file.key)
        if found is None:
            return False
        if not is_same_object(file, found):
            raise self._conflict(file, found)
        if found.metadata.get(FILE_ID) != file.token["file_id"]:
            # Equal bytes by another upload: ours would stay for ever.
            self._requests.abort_upload(file.key, str(file.token["upload_id"]))
        return True

    def _tag(self, files: Sequence[StagedFile], outcomes: dict[str, Outcome]) -> None:
        """Tags as Confluent's sink sets them; `endOffset` is the last offset inside, inclusive."""
        if not self._settings.object_tagging:
            return
        failures: list[ConnectError] = []

        def tag(file: StagedFile) -> None:
            tags = {
                "startOffset": str(file.start),
                "endOffset": str(file.end - 1),
                "recordCount": str(file.records),
            }
            try:
                self._requests.put_tags(file.key, tags | dict(self._settings.extra_tags))
            except ConnectError as error:
                if self._settings.fail_on_tagging_error:
                    raise
                failures.append(error)

        visible = [file for file in files if outcomes[file.key] is not Outcome.LOST]
        with ThreadPoolExecutor(self._settings.publish_threads, thread_name_prefix="s3-tag") as pool:
            for _ in pool.map(tag, visible):
                pass
        if failures:
            log.warning("%d of %d objects have no tags: %s", len(failures), len(visible), failures[0])

    def _conflict(self, file: StagedFile, found: ObjectFacts) -> PublishConflictError:
        offsets = f"{file.topic}-{file.partition}[{file.start}, {file.end})"
        way_out = "Move that object away and run again"
        if self._settings.conditional_writes:
            way_out += ", or set enable.conditional.writes=false to overwrite as Confluent's connector does"
        return PublishConflictError(
            f"{self._place(file.key)} holds another object ({found.size_bytes} bytes, ETag {found.etag}) "
            f"than the one staged for {offsets} ({file.size_bytes} bytes).",
            suggestion=f"{way_out}.",
            config_path="enable.conditional.writes" if self._settings.conditional_writes else "",
        )

    def _place(self, key: str) -> str:
        return f"s3://{self._settings.bucket}/{key}"


def _is_decided_by_others(refusal: Refusal) -> bool:
    return refusal.status in (409, 412) or refusal.code == PRECONDITION_FAILED


def _is_upload_gone(refusal: Refusal) -> bool:
    """Whether the upload cannot be completed any more; s3proxy says NoSuchKey while another Complete removes it."""
    return refusal.code == "InvalidPart" or (refusal.status == 404 and refusal.code != NO_SUCH_BUCKET)
