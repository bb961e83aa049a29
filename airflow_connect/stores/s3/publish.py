"""Driver side of the S3 store: complete staged uploads idempotently, discard or list the others.

Failures that the order of checks handles:
1. The reply to Complete was lost. The repeated request gets 412 or 404, and HEAD shows our object: already published.
2. A lifecycle rule aborted the upload. Complete returns NoSuchUpload and HEAD finds nothing: lost, must be copied
again.
3. Another program wrote the key. 412, and HEAD shows a foreign object: a conflict for people to resolve; nothing is
overwritten. With `behavior.on.foreign.objects=replace`, Complete is repeated with `If-Match` and the ETag from HEAD.
412 now means that the object has changed since, so its writer is alive: a conflict. A lost reply is handled as in 1,
because our object has a different ETag. An object with `connect-file-id` is ours and never replaced.
4. A run that was presumed dead publishes again, late. As in 1, the same bytes stay where they are.
MinIO answers 404 to a repeated Complete, Amazon 200 for a while, s3proxy 200: all three end in the same
outcome.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from airflow_connect.api.staging import StagedFile
from airflow_connect.errors import ConnectError, PublishConflictError, UnavailableError
from airflow_connect.stores.publishing import publish_each, refuse_equal_keys
from airflow_connect.stores.s3.etag import FILE_ID, OFFSETS, RUN_ID, is_same_object, parts_of
from airflow_connect.stores.s3.http.errors import (
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    Refusal,
    error_for,
)
from airflow_connect.stores.s3.http.transport import S3Transport
from airflow_connect.stores.s3.preflight import check_bucket
from airflow_connect.stores.s3.requests import PUBLISH_RETRIES, ObjectFacts, S3Requests
from airflow_connect.stores.s3.settings import S3Settings
from airflow_connect.stores.store import LeftOver, Outcome

log = logging.getLogger(__name__)

FOREIGN_OBJECTS = "behavior.on.foreign.objects"
_TAKE_OVER = (
    "If a Kafka Connect worker wrote it and was killed before it committed the offsets, run once with "
    f"{FOREIGN_OBJECTS}=replace: the object is overwritten with the same records. Otherwise move it away and run again."
)
_TWO_OF_OURS = (
    "It is never replaced. Either two connectors write to the same names, or offsets were reset: move the object away,"
    " or "
    "give this connector another topics.dir, and run again."
)
_STILL_ALIVE = "Stop the program that writes it, a Kafka Connect worker perhaps, and run again."

LOOKS_BEFORE_LOST = 3
"""If another publisher is completing the same upload, the upload can vanish before its object is visible."""


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
        # Some S3-compatible stores do not support If-None-Match on Complete; after one 501 it is no longer sent.
        self._server_checks_absence = settings.conditional_writes
        self.replaced: list[str] = []
        """Keys under which a foreign object was replaced."""

    @property
    def possible_duplicates(self) -> bool:
        """Whether the preflight's upload may have been created twice."""
        return self._requests.possible_duplicates

    @property
    def replaces_foreign(self) -> bool:
        """Whether foreign objects may be replaced."""
        return self._settings.replace_foreign

    def preflight(self) -> None:
        """Check address, credentials, bucket, region and permissions, with four requests.

        Raises:
            AccessError, ConfigError, UnavailableError: with what is missing.
        """
        check_bucket(self._requests, self._probe_prefix)

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Complete the uploads of `files`, in parallel; a conflict does not keep the others from being published.

        Raises:
            PublishConflictError: names the first conflicting key and the number of conflicts.
            UnavailableError, AccessError, ConfigError: publishing again continues from here.
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

        On MinIO a prefix finds only uploads whose key equals it; pass whole keys there.
        """
        seen: set[tuple[str, str]] = set()
        for prefix in prefixes:
            for upload in self._requests.list_uploads(prefix):
                identity = (upload.key, upload.upload_id)
                if upload.key.startswith(prefix) and identity not in seen:
                    seen.add(identity)
                    yield LeftOver(upload.key, {"upload_id": upload.upload_id}, upload.started_ms)

    def keys_below(self, prefix: str) -> list[str]:
        """Keys of all objects whose keys begin with `prefix`."""
        return [found.key for found in self._requests.list_objects(prefix)]

    def mark(self, keys: Sequence[str]) -> None:
        """Put an empty object under each key, in parallel."""
        with ThreadPoolExecutor(self._settings.publish_threads, thread_name_prefix="s3-mark") as pool:
            for _ in pool.map(self._requests.put_empty, keys):
                pass

    def write(self, key: str, data: bytes) -> None:
        """Put one object."""
        self._requests.put(key, data)

    def close(self) -> None:
        """Release connections; idempotent."""
        self._transport.close()

    def _publish_one(self, file: StagedFile) -> Outcome:
        if self._settings.conditional_writes and not self._server_checks_absence:
            return self._publish_after_head(file)
        tries = self._transport.begin_tries(PUBLISH_RETRIES)
        looks = 0
        replacing = "" if self._settings.conditional_writes else None
        while True:
            refusal = self._complete(file, replacing)
            if refusal is None:
                if replacing:
                    self._note_replaced(file)
                return Outcome.PUBLISHED
            if refusal.status == 501 or refusal.code == NOT_IMPLEMENTED:
                self._server_checks_absence = False
                return self._publish_after_head(file)
            is_gone = _is_upload_gone(refusal)
            # 409: another Complete of this key is in progress. 412 without an object: it was deleted in the meantime.
            if not is_gone and not _is_conflict(refusal):
                raise error_for(refusal, self._requests.completing(file.key))
            standing = self._object_in_place(file, replacing or "")
            if standing is None:
                return Outcome.ALREADY_PUBLISHED
            # If there is no object any more, 404 meant that the object to be replaced is gone, not the upload.
            looks += is_gone and not (replacing and not standing)
            if looks == LOOKS_BEFORE_LOST:
                return Outcome.LOST
            if replacing is not None:
                replacing = standing
            if not tries.pause():
                raise UnavailableError(f"{self._place(file.key)} could not be published: {refusal}.", code="s3.busy")

    def _publish_after_head(self, file: StagedFile) -> Outcome:
        """For servers without conditional writes.

        Checking and writing are two steps, which fencing makes safe between runs. An object that another program writes
        in between is overwritten.
        """
        standing = self._object_in_place(file)
        if standing is None:
            return Outcome.ALREADY_PUBLISHED
        refusal = self._complete(file, None)
        if refusal is None:
            if standing:
                self._note_replaced(file)
            return Outcome.PUBLISHED
        if not _is_upload_gone(refusal):
            raise error_for(refusal, self._requests.completing(file.key))
        return Outcome.ALREADY_PUBLISHED if self._object_in_place(file) is None else Outcome.LOST

    def _complete(self, file: StagedFile, replacing: str | None) -> Refusal | None:
        upload_id = str(file.token["upload_id"])
        return self._requests.complete_upload(file.key, upload_id, parts_of(file), replacing=replacing)

    def _object_in_place(self, file: StagedFile, seen: str = "") -> str | None:
        """What a file's key holds: None: the file itself; "": nothing; else the ETag of an object that may be replaced.

        Args:
            file: what is to be published.
            seen: ETag of a foreign object that an earlier check found; a different one now means that it is being
                written.

        Raises:
            PublishConflictError: the key holds an object that must stay.
        """
        found = self._requests.head_object(file.key)
        if found is None:
            return ""
        if is_same_object(file, found):
            if found.metadata.get(FILE_ID) != file.token["file_id"]:
                # Equal bytes from another upload: ours would stay forever.
                self._requests.abort_upload(file.key, str(file.token["upload_id"]))
            return None
        if FILE_ID in found.metadata or not self._settings.replace_foreign or seen not in ("", found.etag):
            raise self._conflict(file, found, seen)
        return found.etag

    def _note_replaced(self, file: StagedFile) -> None:
        log.warning("The foreign object %s was replaced (behavior.on.foreign.objects=replace).", self._place(file.key))
        self.replaced.append(file.key)

    def _tag(self, files: Sequence[StagedFile], outcomes: dict[str, Outcome]) -> None:
        """Set tags as Confluent's sink does; `endOffset` is the last offset inside, inclusive."""
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

    def _conflict(self, file: StagedFile, found: ObjectFacts, seen: str) -> PublishConflictError:
        whose, way_out, key = "an object of another program", _TAKE_OVER, FOREIGN_OBJECTS
        if FILE_ID in found.metadata:
            of_run = f"run {found.metadata.get(RUN_ID, '?')}, offsets {found.metadata.get(OFFSETS, '?')}"
            whose, way_out, key = f"another object of airflow_connect ({of_run})", _TWO_OF_OURS, ""
        elif self._settings.replace_foreign:
            whose, way_out = "an object of another program that is being written right now", _STILL_ALIVE
        changed = f"; it had ETag {seen} a moment ago" if seen else ""
        return PublishConflictError(
            f"{self._place(file.key)} holds {whose} ({found.size_bytes} bytes, ETag {found.etag}{changed}) where "
            f"{file.topic}-{file.partition}[{file.start}, {file.end}) is to be published ({file.size_bytes} bytes).",
            suggestion=way_out,
            config_path=key,
        )

    def _place(self, key: str) -> str:
        return f"s3://{self._settings.bucket}/{key}"


def _is_conflict(refusal: Refusal) -> bool:
    return refusal.status in (409, 412) or refusal.code == PRECONDITION_FAILED


def _is_upload_gone(refusal: Refusal) -> bool:
    """Whether the upload can no longer be completed; s3proxy returns NoSuchKey while another Complete removes it."""
    return refusal.code == "InvalidPart" or refusal.is_absence
