"""Publishes and commits a manifest: a run's own, or one that it recovers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_connect.api.staging import StagedFile
from airflow_connect.counting import plural
from airflow_connect.errors import ConnectError, NothingPublishedError, OffsetError, StagedFileLostError
from airflow_connect.exactly_once.journal import Commit, Journal, TopicRecord
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.exactly_once.state import CLOSED, ConnectorState
from airflow_connect.stores.store import NAME_NOT_KEPT, Outcome, Publisher

Recopy = Callable[[Manifest, Sequence[StagedFile]], Sequence[StagedFile]]
"""Stage the given lost files of a manifest again: `(manifest, lost files) -> every file staged while doing so`."""
Save = Callable[[Manifest, Sequence[StagedFile], str], Manifest]
"""Give lost files up as far as they cannot be copied again: `(manifest, lost files, why) -> the manifest to finish`."""


class NeverVisibleError(Exception):
    """None of the files of a manifest is visible, and none can ever be; says why, as a sentence.

    The store does not keep their names (versions before the check of `S3Requests.check_key_is_kept` wrote such
    manifests), or it has said so itself.
    """


def publish(
    manifest: Manifest,
    publisher: Publisher,
    journal: Journal | None,
    recopy: Recopy,
    progress: Callable[[int], None],
    save: Save | None = None,
) -> Manifest:
    """Make every file of the manifest visible; idempotent (invariant 4).

    Files that the store has lost (a lifecycle rule aborted their uploads) are staged again from the manifest's own
    ranges under the same keys. The manifest is rewritten before they are published, so a crash in between is rolled
    forward like any other. Without a `journal` it is not rewritten (at most once: the manifest is already committed).

    If they cannot be staged again as they were, `save` decides what becomes of them. Its notes are in the manifest that
    is rewritten, so a later run that rolls it forward reports them as well (invariant 10).

    Returns:
        The manifest, with every file as it was published.

    Raises:
        PublishConflictError: a foreign object has one of the keys; the manifest stays open.
        StagedFileLostError: a lost file cannot be staged again, and there is no `save`.
        NeverVisibleError: none of the files is visible, and none can ever be.
        UnavailableError: the store did not answer; the manifest stays open and the next run continues.
    """
    try:
        outcomes = publisher.publish(manifest.files, progress)
    except NothingPublishedError as error:
        raise NeverVisibleError(error.message) from error
    lost = [f for f in manifest.files if outcomes[f.key] is Outcome.LOST]
    if not lost:
        return manifest
    replaced = _stage_again_or_save(manifest, lost, publisher, recopy, save)
    if journal is not None:
        journal.write_manifest(replaced)
    visible = {key for key, outcome in outcomes.items() if outcome is not Outcome.LOST}
    again = publisher.publish([f for f in replaced.files if f.key not in visible], progress)
    still_lost = sorted(key for key, outcome in again.items() if outcome is Outcome.LOST)
    if still_lost:
        raise _lost(still_lost, "was lost again before it could be published")
    return replaced


def _stage_again_or_save(
    manifest: Manifest, lost: Sequence[StagedFile], publisher: Publisher, recopy: Recopy, save: Save | None
) -> Manifest:
    try:
        return _stage_again(manifest, lost, publisher, recopy)
    except StagedFileLostError as error:
        if save is None:
            raise
        why = error.message.removesuffix(".")
    except ConnectError as error:
        if error.code != NAME_NOT_KEPT:
            raise
        if len(lost) == len(manifest.files):
            raise NeverVisibleError(
                f"Run {manifest.run_id} was to publish {plural(len(lost), 'file')} under names that the store does not"
                f" keep, such as {lost[0].key!r}."
            ) from error
        why = error.message.removesuffix(".")
        if save is None:
            raise _lost(sorted(f.key for f in lost), f"could not be copied again: {why}") from error
    try:
        return save(manifest, lost, why)
    except OffsetError as error:
        raise _lost(sorted(f.key for f in lost), f"could not be copied again: {error.message}") from error


def _stage_again(manifest: Manifest, lost: Sequence[StagedFile], publisher: Publisher, recopy: Recopy) -> Manifest:
    try:
        staged = recopy(manifest, lost)
    except OffsetError as error:
        what = f"could not be copied again: {error.message.removesuffix('.')}"
        raise _lost(sorted(f.key for f in lost), what) from error
    by_key = {f.key: f for f in staged}
    wanted = {f.key for f in lost}
    publisher.abort([f for f in staged if f.key not in wanted])
    different = [f.key for f in lost if _content(by_key.get(f.key)) != _content(f)]
    if different:
        publisher.abort([f for f in staged if f.key in wanted])
        raise _lost(sorted(different), "could not be copied again: Kafka no longer has the records that were in it")
    return replace(manifest, files=tuple(by_key[f.key] if f.key in wanted else f for f in manifest.files))


def _content(file: StagedFile | None) -> tuple[int, int, int] | None:
    return (file.start, file.end, file.records) if file else None


def _lost(keys: Sequence[str], what: str) -> StagedFileLostError:
    shown = ", ".join(keys[:5]) + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")
    return StagedFileLostError(
        f"A staged file {what.removesuffix('.')}: {shown}.",
        suggestion="No offset was moved and the manifest stays open. To write what Kafka still holds of these files"
        " and give up the rest, set offsets.out.of.range to earliest, latest or nearest for one run; its report names"
        " every file and counts the records. Check what deletes staged files, and the topic's retention. A bucket's"
        " rule for incomplete multipart uploads must allow more time than a connector may stay down. Nothing may"
        " delete files below +tmp.",
        config_path="offsets.out.of.range",
    )


def commit(
    manifest: Manifest,
    journal: Journal,
    dead_letters: Sequence[TopicRecord],
    summary: Mapping[str, Any],
    state: ConnectorState,
    gone: Collection[str] = (),
) -> None:
    """Store the manifest's offsets, dead letters and summary and close it, in one transaction (invariant 5).

    `gone`: topics that were deleted or recreated since. Kafka takes no offset of a partition that does not exist, and
    an offset of another topic means nothing. The state keeps them, so that the plan tells what became of the topic.
    """
    journal.commit(
        Commit(
            offsets={tp: offset for tp, offset in manifest.offsets.items() if tp.topic not in gone},
            state=replace(state_after(manifest, state), phase=CLOSED),
            summary=summary,
            dead_letters=dead_letters,
            closes_manifest=True,
        )
    )


def state_after(manifest: Manifest, state: ConnectorState) -> ConnectorState:
    """The connector's state after a manifest is committed."""
    known = state.seeing(manifest.topic_ids)
    after = replace(known, committed={**known.committed, **manifest.offsets})
    if manifest.after is None:
        return after
    # The connector was told of topics that are gone when the run of the manifest was planned.
    return replace(after, kept=manifest.after.kept, gone=frozenset(), forgotten=frozenset())
