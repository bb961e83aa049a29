"""The driver's part for files of values: one listing, what is left, the topics, and the work of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.source import OffsetChanges, SourceOffset, SourcePartition
from airflow_connect.connectors.restore.documents import Documents
from airflow_connect.connectors.restore.keys import WHOLE_FORMATS, RestoreKeys
from airflow_connect.connectors.restore.read.opening import Store
from airflow_connect.connectors.restore.remembered import text_of
from airflow_connect.connectors.restore.target import Targets, Wanted, refused, settings_after, told_of_made
from airflow_connect.connectors.restore.unread import unread
from airflow_connect.connectors.restore.values.files import ValueBackup, losses, names_of
from airflow_connect.connectors.restore.values.imports import (
    Changes,
    Committed,
    Import,
    committed_files,
    join_finished,
)
from airflow_connect.connectors.restore.values.plan import known_of_backup, left_of_backup, missing_files
from airflow_connect.connectors.restore.values.progress import ValueProgress
from airflow_connect.connectors.restore.values.reading import ValueFileReader
from airflow_connect.connectors.restore.values.work import ValueChain, chains_of, divided, task_config
from airflow_connect.connectors.restore.work import expected
from airflow_connect.counting import names, plural
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from airflow_connect.api.source import SourceConnectorContext
    from airflow_connect.connectors.restore.config import RestoreConfig
    from airflow_connect.kafka.admin.topics import TopicInfo

_MEANING = {
    "timestamp": "records get the time of the run",
    "key": "keys become null",
    "headers": "records have no headers",
    "header_types": "the types of headers, repeated names and their order are what the files have kept of them",
    "order": "records of files in several directories may come in another order",
}


class ValueFiles:
    """What a connector does if its files hold values."""

    def __init__(
        self,
        typed: RestoreConfig,
        store: Store,
        context: SourceConnectorContext,
        targets: Callable[[], AbstractContextManager[Targets]],
    ) -> None:
        """`targets`: the topics of the cluster that records go to."""
        self._typed, self._store, self._context, self._targets = typed, store, context, targets
        self._reader = ValueFileReader(store, typed.file_format, typed.read_options, typed.unpacking)
        self._version_of = self._reader.version
        self._planned: list[ValueChain] | None = None

    def reconcile_offsets(self, committed: Iterable[tuple[SourcePartition, SourceOffset]]) -> OffsetChanges:
        """Plan the run. A restore claims its topics; see `RestoreConnector.reconcile_offsets`.

        An import claims the ranges of files that it divides, and joins them when all are imported.

        Raises:
            ConfigError, OffsetError, DataError: the plan cannot be carried out.
        """
        offsets = list(committed)
        if self._typed.is_import:
            files = committed_files(offsets)
            joined = join_finished(files)
            return joined if self._context.tasks_ended else [*joined, *self._import(files)]
        known = self._known(offsets)
        if mine := {tp: one for tp, one in known.items() if one.run == self._context.run_id}:
            with self._targets() as targets:
                targets.ensure_kept(mine, self._typed.target_of)
            return ()
        backup, chains = self._restore(known)
        self._planned = self._claimed(chains, self._wanted(backup, chains, known), known)
        return [(dict(chain.source), dict(chain.offset)) for chain in self._planned]

    def task_configs(self, config: Mapping[str, str], max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One configuration for each task that has something to copy."""
        if self._planned is None:
            self._plan_only()
        chains = self._planned or ()
        files, what = expected(len(one.files) for one in chains)
        if self._typed.is_import:
            is_divided = any(one.rows is not None for one in chains)
            what = f"files and ranges of {plural(_files_of(chains), 'file')}" if is_divided else "files"
        self._context.expect_parts(files, what)
        return [task_config(config, part) for part in divided(chains, max_tasks)]

    def source_partitions(self, task_config: Mapping[str, str]) -> Iterable[SourcePartition]:
        """Those of the task's chains."""
        return [dict(one.source) for one in chains_of(task_config)]

    def _known(self, offsets: Iterable[tuple[SourcePartition, SourceOffset]]) -> dict[TopicPartition, ValueProgress]:
        return known_of_backup(self._typed.root, offsets, self._typed.selects)

    def _plan_only(self) -> None:
        offsets = list(self._context.offset_reader.committed())
        if self._typed.is_import:
            files = committed_files(offsets)
            join_finished(files)
            self._import(files)
        else:
            known = self._known(offsets)
            backup, self._planned = self._restore(known)
            wanted = self._wanted(backup, self._planned, known)
            with self._targets() as targets:
                there = targets.existing(wanted)
                findings = self._findings(targets, wanted, there, known)
            if missing := sorted(wanted.keys() - there.keys()):
                self._context.note(f"A run would create {plural(len(missing), 'topic')}: {names(missing, 20)}.")
            for finding in findings:
                self._context.note(f"A run would be refused: {finding}")
        self._tell_plan(self._planned or ())

    def _tell_plan(self, chains: Sequence[ValueChain]) -> None:
        size = sum(chain.size_bytes or sum(file.size for file in chain.files) for chain in chains)
        what = plural(sum(len(chain.files) for chain in chains), "file")
        if self._typed.is_import:
            what = plural(_files_of(chains), "file")
        what += f" of {plural(len(chains), 'partition')}" if not self._typed.is_import else ""
        shown = names((chain.label for chain in chains), 20)
        self._context.note(f"To copy: {what}, {plural(size, 'byte')}" + (f": {shown}." if shown else "."))

    # --- mode=GENERIC --------------------------------------------------------------------------------------------

    def _import(self, known: dict[str, list[Committed]]) -> Changes:
        """Plan what is left, and return the offsets of ranges of files that are divided now."""
        typed, store = self._typed, self._store
        # One task alone would lose the order of a file for nothing.
        split_bytes = typed.split_bytes if int(typed.raw.get("tasks.max") or 1) > 1 else 0
        found = Import(
            typed.root,
            typed.key_of,
            typed.topic_patterns,
            typed.from_modified_ms,
            lambda file: self._reader.cuts(file, split_bytes),
        )
        found.take(store.files.walk(f"{typed.root}/", recursive=True), known, self._version_of)
        self._planned = found.chains
        for note in (*found.notes(), *unread(store.files, lambda one: found.topic_of(one.name) is not None)):
            self._context.note(note)
        for part, error in found.left_out:
            self._context.leave_out(part, error)
        if found.chains or found.done or found.too_old or found.left_out:
            return found.changes
        if not found.unmatched:
            # Files may still come: a schedule may be older than the first of them.
            self._context.note(f"{typed.root} holds no file.")
        else:
            raise ConfigError(
                f"{typed.root} holds no file that {RestoreKeys.topic_patterns} matches. It has"
                f" {plural(len(found.unmatched), 'other file')}.",
                code="restore.nothing",
                config_path=RestoreKeys.topic_patterns.name,
                suggestion=f"The expression must match the whole key, {RestoreKeys.topics_dir} included.",
            )
        return found.changes

    # --- mode=RESTORE_BACKUP -------------------------------------------------------------------------------------

    def _restore(self, known: Mapping[TopicPartition, ValueProgress]) -> tuple[ValueBackup, list[ValueChain]]:
        typed, store = self._typed, self._store
        grammar = names_of(typed)
        backup = ValueBackup.of(store.files.walk(f"{typed.root}/", recursive=True), grammar, typed.selects)
        for note in (*backup.notes(typed.root), *unread(store.files, lambda one: grammar.read(one) is not None)):
            self._context.note(note)
        found = {tp.topic for tp in (*backup.chains, *known)}
        missing = sorted(set(typed.topics) - found)
        if missing or not found:
            what = f"of topic {names(missing)}" if missing else "that could be restored"
            raise ConfigError(
                f"{typed.root} holds no file {what}."
                + (f" It has {plural(backup.others, 'file')} with other names." if backup.others else ""),
                code="restore.nothing",
                config_path=RestoreKeys.topics_dir.name,
                suggestion=f"Set {RestoreKeys.topics_dir}, {RestoreKeys.file_format} and {RestoreKeys.file_delim} as in"
                f" the sink, and {RestoreKeys.topics} to topics that it has copied.",
            )
        for note in missing_files(backup.chains, known):
            self._context.note(note)
        chains = left_of_backup(typed.root, backup.chains, known, self._version_of, typed.target_of)
        if chains and typed.file_format in WHOLE_FORMATS:
            self._reader.refuse_whole_records(chains[0].files[0])
        elif chains:
            self._reader.ensure_readable(chains[0].files[0])
        self._refuse_losses(backup)
        return backup, chains

    def _refuse_losses(self, backup: ValueBackup) -> None:
        """Files of values do not hold everything of a record: what is lost must be accepted by its name."""
        lost = losses(backup.chains.values(), has_envelope=self._typed.unpacking is not None)
        if missing := [one for one in lost if one not in self._typed.accepted]:
            raise ConfigError(
                "The files do not hold everything that their records had:"
                f" {'; '.join(f'{one}: {_MEANING[one]}' for one in missing)}.",
                code="restore.losses",
                config_path=RestoreKeys.accepted.name,
                suggestion=f"Set {RestoreKeys.accepted}={','.join(sorted({*lost, *self._typed.accepted}))} to restore"
                " them nevertheless. Sinks that store whole records lose nothing (store.kafka.records=true).",
            )
        told = "; ".join(f"{one}: {_MEANING[one]}" for one in lost)
        self._context.note(f"What {RestoreKeys.accepted} allows to be lost: {told}.")

    def _wanted(
        self, backup: ValueBackup, chains: Sequence[ValueChain], known: Mapping[TopicPartition, ValueProgress]
    ) -> dict[str, Wanted]:
        by_target: dict[str, str] = {}
        for tp in backup.chains:
            target = self._typed.target_of(tp.topic)
            if by_target.setdefault(target, tp.topic) != tp.topic:
                raise ConfigError(
                    f"Topics {by_target[target]} and {tp.topic} of the backup would both be restored to {target}.",
                    code="restore.same_target",
                    config_path=RestoreKeys.rename.name,
                    suggestion="Give them different names, or restore one of them.",
                )
        left = {chain.topic for chain in chains}
        by_target = {target: topic for target, topic in by_target.items() if target in left}
        documents = Documents(self._store, backup.documents)
        originals = documents.facts_of(by_target.values())
        for note in documents.notes:
            self._context.note(note)
        found = {}
        for target, topic in by_target.items():
            numbers = sorted({tp.partition for tp in (*backup.chains, *known) if tp.topic == topic})
            progress = {number: known.get(TopicPartition(topic, number)) for number in numbers}
            original = originals.get(topic)
            partitions = max(numbers[-1] + 1, 0 if original is None else original.partitions)
            stamps = [self._reader.first_timestamp(chain.files[0]) for chain in chains if chain.topic == target]
            oldest_ms = min((stamp for stamp in stamps if stamp is not None), default=None)
            found[target] = Wanted(topic, partitions, progress, oldest_ms, original)
        return found

    def _findings(
        self,
        targets: Targets,
        wanted: Mapping[str, Wanted],
        there: Mapping[str, TopicInfo],
        known: Mapping[TopicPartition, ValueProgress],
    ) -> list[str]:
        topics = {one.topic for one in wanted.values()}
        finished = {tp: one for tp, one in known.items() if tp.topic not in topics}
        missing = targets.not_creatable(wanted.keys() - there.keys())
        return [*targets.findings(wanted, there), *missing, *targets.lost(finished, self._typed.target_of)]

    def _claimed(
        self,
        chains: Sequence[ValueChain],
        wanted: Mapping[str, Wanted],
        known: Mapping[TopicPartition, ValueProgress],
    ) -> list[ValueChain]:
        """Check the topics, create those that are missing, and note their ids in the offsets."""
        with self._targets() as targets:
            there = targets.existing(wanted)
            if findings := self._findings(targets, wanted, there, known):
                raise refused(findings)
            missing = {target: one for target, one in wanted.items() if target not in there}
            made = targets.made_before(wanted, there)
            for note in (*targets.notes(wanted, there), *map(told_of_made, made.items()), *targets.create(missing)):
                self._context.note(note)
            there = targets.existing(wanted)
            targets.check_created(wanted, there, missing)
            limits = targets.limits(there)
        later = {target: settings_after(one.original) for target, one in missing.items()} | made
        kept = {target: text_of(settings) for target, settings in later.items()}
        claimed = self._with_topics(chains, {target: info.topic_id for target, info in there.items()}, kept)
        return [one._replace(**limits[one.topic]._asdict()) for one in claimed]

    def _with_topics(
        self, chains: Sequence[ValueChain], ids: Mapping[str, str], later: Mapping[str, str]
    ) -> Iterator[ValueChain]:
        for chain in chains:
            progress = ValueProgress.of(chain.offset)
            kept = progress.later if progress.topic_id == ids[chain.topic] else ""
            claimed: dict[str, Any] = progress.after(
                target=chain.topic,
                topic_id=ids[chain.topic],
                run=self._context.run_id,
                later=later.get(chain.topic) or kept,
            ).to_offset()
            yield chain._replace(offset=claimed)


def _files_of(chains: Iterable[ValueChain]) -> int:
    """How many files of an import; a divided one counts once."""
    return len({chain.files[0].first.name for chain in chains})
