"""Driver side of the S3 store: complete staged uploads idempotently, discard or list the others.

Failure stories that the order of checks answers:
1. The reply to Complete was lost. It is repeated: 412 or 404 now, and HEAD shows our object: already
   published.
2. A lifecycle rule aborted the upload. Complete says NoSuchUpload and HEAD finds nothing: lost, to be copied
   again.
3. Another program wrote the key. 412, and HEAD shows a foreign object: a conflict for people; nothing is overwritten.
   Where `behavior.on.foreign.objects=replace` says so, Complete is repeated with `If-Match` and the ETag that HEAD
   showed: 412 now means that the object has changed since, and its writer lives: a conflict. A lost reply is 1, for
   our object has another ETag. An object that carries `connect-file-id` is one of ours and never replaced.
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
from airflow_connect.stores.s3_etag import FILE_ID, OFFSETS, RUN_ID, is_same_object, parts_of
from airflow_connect.stores.s3_preflight import check_bucket
from airflow_connect.stores.s3_requests import PUBLISH_RETRIES, ObjectFacts, S3Requests
from airflow_connect.stores.s3_settings import S3Settings
from airflow_connect.stores.s3_transport import S3Transport
from airflow_connect.stores.store import LeftOver, Outcome

log = logging.getLogger(__name__)

FOREIGN_OBJECTS = "behavior.on.foreign.objects"
_TAKE_OVER = (
    "If a Kafka Connect worker wrote it and was killed before it committed the offsets, run once with "
    f"{FOREIGN_OBJECTS}=replace: the object is overwritten with the same records. Else move it away and run again."
)
_TWO_OF_OURS = (
    "Nothing replaces it. Two connectors write to the same names, or offsets were set back: move the object away, or "
    "give this connector another topics.dir, and run again."
)
_STILL_ALIVE = "Stop the program that writes it, a Kafka Connect worker perhaps, and run again."

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
        self.replaced: list[str] = []
        """Keys under which a foreign object was replaced."""

    @property
    def may_have_twins(self) -> bool:
        """Whether the preflight's upload may have been made twice."""
        return self._requests.may_have_twins

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

    def keys_below(self, prefix: str) -> list[str]:
        """Keys of all objects whose keys begin with `prefix`."""
        return [found.key for found in self._requests.list_objects(prefix)]

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
        replacing = "" if self._settings.conditional_writes else None
        while True:
            refusal = self._complete(file, replacing)
            if refusal is None:
                if replacing:
                    self._note_replaced(file)
                return Outcome.PUBLISHED
            if refusal.status == 501 or refusal.code == NOT_IMPLEMENTED:
                self._server_checks_absence = False
                return self._publish_after_look(file)
            is_gone = _is_upload_gone(refusal)
            # 409: another Complete of this key is under way. 412 without an object: it was deleted since.
            if not is_gone and not _is_decided_by_others(refusal):
                raise error_for(refusal, self._requests.completing(file.key))
            standing = self._standing(file, replacing or "")
            if standing is None:
                return Outcome.ALREADY_PUBLISHED
            # Where nothing stands any more, 404 said that the object to be replaced has gone, and not the upload.
            looks += is_gone and not (replacing and not standing)
            if looks == LOOKS_BEFORE_LOST:
                return Outcome.LOST
            if replacing is not None:
                replacing = standing
            pause = next(pauses, None)
            if pause is None:
                raise UnavailableError(f"{self._place(file.key)} could not be published: {refusal}.", code="s3.busy")
            self._transport.wait(pause)

    def _publish_after_look(self, file: StagedFile) -> Outcome:
        """For servers without conditional writes.

        The look and the write are two steps, which fencing makes safe among runs. A foreign object that another
        program writes between them is overwritten.
        """
        standing = self._standing(file)
        if standing is None:
            return Outcome.ALREADY_PUBLISHED
        refusal = self._complete(file, None)
        if refusal is None:
            if standing:
                self._note_replaced(file)
            return Outcome.PUBLISHED
        if not _is_upload_gone(refusal):
            raise error_for(refusal, self._requests.completing(file.key))
        return Outcome.ALREADY_PUBLISHED if self._standing(file) is None else Outcome.LOST

    def _complete(self, file: StagedFile, replacing: str | None) -> Refusal | None:
        upload_id = str(file.token["upload_id"])
        return self._requests.complete_upload(file.key, upload_id, parts_of(file), replacing=replacing)

    def _standing(self, file: StagedFile, seen: str = "") -> str | None:
        """What stands under a file's key: None: the file itself; "": nothing; else the ETag of what may be replaced.

        Args:
            file: what is to be published.
            seen: ETag of a foreign object that an earlier look found; another one now is being written.

        Raises:
            PublishConflictError: the key holds an object that must stay.
        """
        found = self._requests.head_object(file.key)
        if found is None:
            return ""
        if is_same_object(file, found):
            if found.metadata.get(FILE_ID) != file.token["file_id"]:
                # Equal bytes by another upload: ours would stay for ever.
                self._requests.abort_upload(file.key, str(file.token["upload_id"]))
            return None
        if FILE_ID in found.metadata or not self._settings.replace_foreign or seen not in ("", found.etag):
            raise self._conflict(file, found, seen)
        return found.etag

    def _note_replaced(self, file: StagedFile) -> None:
        log.warning("The foreign object %s was replaced (behavior.on.foreign.objects=replace).", self._place(file.key))
        self.replaced.append(file.key)

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


def _is_decided_by_others(refusal: Refusal) -> bool:
    return refusal.status in (409, 412) or refusal.code == PRECONDITION_FAILED


def _is_upload_gone(refusal: Refusal) -> bool:
    """Whether the upload cannot be completed any more; s3proxy says NoSuchKey while another Complete removes it."""
    return refusal.code == "InvalidPart" or (refusal.status == 404 and refusal.code != NO_SUCH_BUCKET)
