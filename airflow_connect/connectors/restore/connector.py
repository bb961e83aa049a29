"""The restore sources as connector classes: one for each store."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from airflow_connect.api.cluster_facts import TopicFacts
from airflow_connect.api.config.config_def import ConfigValue
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.source import ExactlyOnceSupport, OffsetChanges, SourceConnector, SourceOffset, SourcePartition
from airflow_connect.connectors.restore.backup import Backup, FileNames
from airflow_connect.connectors.restore.config import (
    HdfsRestoreConfig,
    LocalRestoreConfig,
    RestoreConfig,
    S3RestoreConfig,
    holds_values,
    with_what_does_not_fit,
)
from airflow_connect.connectors.restore.documents import Documents
from airflow_connect.connectors.restore.groups.step import Restored
from airflow_connect.connectors.restore.keys import TARGET, RestoreKeys
from airflow_connect.connectors.restore.plan import chains_left, missing_files
from airflow_connect.connectors.restore.progress import Progress, partition_of, topic_partition_of
from airflow_connect.connectors.restore.ranges import Ranges, first_to_read
from airflow_connect.connectors.restore.read.chain import FileReader
from airflow_connect.connectors.restore.read.opening import Store
from airflow_connect.connectors.restore.read.records import NO_BACKUP
from airflow_connect.connectors.restore.remembered import settings_in, text_of
from airflow_connect.connectors.restore.same_topic import told_of_topics
from airflow_connect.connectors.restore.target import (
    KEEPS_ALL,
    Prepared,
    Targets,
    Wanted,
    refused,
    settings_after,
    told_of_made,
)
from airflow_connect.connectors.restore.task import RestoreTask
from airflow_connect.connectors.restore.unread import unread
from airflow_connect.connectors.restore.values.driver import ValueFiles
from airflow_connect.connectors.restore.work import Chain, chains_of, divided, expected, task_config
from airflow_connect.counting import names, plural
from airflow_connect.errors import ConfigError, DataError, InternalError
from airflow_connect.kafka.admin.topic_settings import change
from airflow_connect.kafka.admin.topics import INTERNAL_TOPICS, TopicInfo
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.registry.settings import settings_to_reach
from airflow_connect.stores.file_systems import FileSystems

_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
RAW_BYTES: Mapping[str, str] = {"key.converter": _BYTES, "value.converter": _BYTES, "header.converter": _BYTES}


class RestoreConnector(SourceConnector):
    """What the connectors of all stores have in common."""

    version = "1.0"

    _file_systems: FileSystems | None = None
    _values: ValueFiles | None = None
    """What is done if the files hold values."""
    _planned: list[Chain] | None = None
    """What `reconcile_offsets` has planned, for `task_configs` of the same run."""
    _documents: Documents
    _empty: Mapping[str, TopicFacts]
    _to_lift: Mapping[str, Mapping[str, str]] = MappingProxyType({})

    @classmethod
    def default_converters(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Whole records keep their bytes; values are written by the worker's converters."""
        return {} if holds_values(config) else RAW_BYTES

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[ConfigValue]:
        """See `Connector`; also what a run refuses because keys do not fit together."""
        found = super().validate(config)
        is_sound = not any(value.errors for value in found)
        return with_what_does_not_fit(found, cls().read_config(config)) if is_sound else found

    @abstractmethod
    def read_config(self, config: Mapping[str, str]) -> RestoreConfig:
        """The typed configuration."""

    def start(self, config: Mapping[str, str]) -> None:
        """See `Connector`."""
        super().start(config)
        self._typed = self.read_config(config)
        self._typed.refuse_what_does_not_fit()
        self._file_systems = self._typed.file_systems(self.context.aws)
        if self._typed.holds_values:
            self._values = ValueFiles(self._typed, self._store, self.context, self._targets)

    def reconcile_offsets(self, committed: Iterable[tuple[SourcePartition, SourceOffset]]) -> OffsetChanges:
        """Plans the run, and claims the topics: a record of an aborted transaction leaves a topic that is not empty.

        Called once more when the tasks have ended; then offsets name this run, and there is nothing to do.
        """
        offsets = list(committed)
        if self._values is not None:
            return self._values.reconcile_offsets(offsets)
        known = self._known(offsets)
        if mine := {tp: one for tp, one in known.items() if one.run == self.context.run_id}:
            with self._targets() as targets:
                targets.ensure_kept(mine, self._typed.target_of)
            return ()
        backup = self._listed()
        chains, oldest = self._readable(self._left(backup, known))
        prepared = self._prepared(self._wanted(backup, chains, known, oldest), known)
        self._planned = self._claimed(chains, prepared)
        self._to_lift = prepared.to_lift
        return [
            (partition_of(self._typed.root, chain.topic_partition), chain.progress.to_offset())
            for chain in self._planned
        ]

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One configuration for each task that has something to restore.

        Raises:
            OffsetError: files were added, changed or deleted where earlier runs have been.
        """
        if self._values is not None:
            return self._values.task_configs(self.config, max_tasks)
        if self._planned is None:
            # Nothing is claimed if this call only shows a plan.
            if not self.context.only_plans:
                raise InternalError("task_configs was called before reconcile_offsets.")
            self._plan_only()
        self._lift()
        chains = self._planned or ()
        self.context.expect_parts(*expected(len(one.files) for one in chains))
        return [task_config(self.config, part) for part in divided(chains, max_tasks)]

    def source_partitions(self, task_config: Mapping[str, str]) -> Iterable[SourcePartition]:
        """Those of the task's chains: it never reads others."""
        if self._values is not None:
            return self._values.source_partitions(task_config)
        return [partition_of(self._typed.root, one.topic_partition) for one in chains_of(task_config)]

    def names_changed_topics(self, config: Mapping[str, str]) -> bool:
        """False: it compares the topics that it fills with those of its offsets."""
        return False

    def names_changed_routes(self, config: Mapping[str, str]) -> bool:
        """Of files of values; a backup has no transformations."""
        return True

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Files can be read again."""
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None]
    ) -> bool:
        """Offsets can be deleted; what they hold besides a position cannot be written by hand."""
        for offset in offsets.values():
            if offset is not None:
                raise ConfigError(
                    "The offset of a restore cannot be set: it also tells which files were read.",
                    code="offset.refused",
                    suggestion="Delete it: the partition is then restored from the beginning of the backup.",
                )
        return True

    def stop(self) -> None:
        """See `Connector`."""
        if self._file_systems is not None:
            self._file_systems.close()

    @property
    def _store(self) -> Store:
        if self._file_systems is None:
            raise InternalError("The connector was not started.")
        return Store(self._file_systems.of(self._typed.root), self._typed.root)

    def restored(
        self,
        config: Mapping[str, str],
        offsets: Iterable[tuple[SourcePartition, SourceOffset]],
        aws: Mapping[str, str],
    ) -> Restored:
        """The backup, and what is restored of it; to be called instead of `start`, and followed by `stop`.

        Args:
            config: of the connector.
            offsets: that are committed.
            aws: credentials of an Airflow connection, as in `RunSpec`.
        """
        self._typed = self.read_config(config)
        if self._typed.holds_values:
            raise ConfigError(
                "Files of values have no offsets of records, so the offsets of consumer groups cannot be translated.",
                code="restore.no_restore",
                config_path=RestoreKeys.stores_records.name,
                suggestion="Only backups of whole records keep consumer groups in their place.",
            )
        self._file_systems = self._typed.file_systems(aws)
        grammar = FileNames(self._typed.root, self._typed.file_delim, self._typed.extensions[0])
        listed = self._store.files.walk(f"{self._typed.root}/", recursive=True)
        backup = Backup.of(listed, grammar, self._typed.selects)
        return Restored(self._typed, self._store, backup, self._known(offsets))

    def _known(self, offsets: Iterable[tuple[SourcePartition, SourceOffset]]) -> dict[TopicPartition, Progress]:
        """What is committed for the chosen topics of this backup."""
        found = {}
        for partition, offset in offsets:
            tp = topic_partition_of(self._typed.root, partition)
            if tp is not None and self._typed.selects(tp.topic):
                found[tp] = Progress.of(offset)
        return found

    def _listed(self) -> Backup:
        """The one listing of a run."""
        typed, store = self._typed, self._store
        grammar = FileNames(typed.root, typed.file_delim, typed.extensions[0])
        listed = store.files.walk(f"{typed.root}/", recursive=True)
        backup = Backup.of(listed, grammar, typed.selects)
        for note in (*backup.notes(typed.root), *unread(store.files, lambda found: grammar.read(found) is not None)):
            self.context.note(note)
        self._documents = Documents(store, backup.documents)
        return backup

    def _left(self, backup: Backup, known: Mapping[TopicPartition, Progress]) -> list[Chain]:
        """What is to be restored.

        Raises:
            OffsetError: see `chains_left`.
            ConfigError: the backup holds nothing of a topic.
        """
        found = {tp.topic for tp in (*backup.chains, *known)}
        empty = {topic: facts for topic, facts in self._documents.newest().items() if self._is_empty(topic, found)}
        # A topic with files of which none can be read is not one without a record.
        unread = empty.keys() & backup.directories
        self._empty = {topic: facts for topic, facts in empty.items() if topic not in unread}
        found |= self._empty.keys()
        missing = sorted({*self._typed.topics, *unread} - found)
        if missing or not found:
            what = f"of topic {names(missing)}" if missing else "that could be restored"
            others = f" It has {plural(backup.others, 'file')} with other names." if backup.others else ""
            raise ConfigError(
                f"{self._typed.root} holds no file {what}.{others}",
                code="restore.nothing",
                config_path=RestoreKeys.topics_dir.name,
                suggestion=f"Set {RestoreKeys.topics_dir}, {RestoreKeys.file_format} and {RestoreKeys.file_delim} as in"
                f" the sink, and {RestoreKeys.topics} to topics that it has copied.",
            )
        if unused := sorted(self._typed.rename.keys() - found):
            self.context.note(f"{RestoreKeys.rename} names topics of which the backup has no file: {names(unused)}.")
        typed = self._typed
        ranges = Ranges(typed.from_offsets, typed.until_offsets, typed.from_ms, self.context.note)
        ranges.check({*backup.chains, *known})
        for note in missing_files(backup, known):
            self.context.note(note)
        is_content = self._store.files.identity_is_content
        return ranges.of(chains_left(backup, known, identity_is_content=is_content))

    def _plan_only(self) -> None:
        """Show what a run would do, and what it would find about the topics that records go to."""
        known = self._known(self.context.offset_reader.committed())
        backup = self._listed()
        chains, oldest = self._readable(self._left(backup, known))
        wanted = self._wanted(backup, chains, known, oldest)
        with self._targets() as targets:
            there = targets.existing(wanted)
            findings = self._findings(targets, wanted, there, known)
            described = targets.described(there)
            for note in targets.notes(wanted, described):
                self.context.note(note)
            lifted = targets.to_lift(described)
            missing = sorted({*(wanted.keys() - there.keys()), *self._without_records(wanted, targets.names())})
        if missing:
            self.context.note(f"A run would create {plural(len(missing), 'topic')}: {names(missing, 20)}.")
        if lifted:
            self.context.note(f"A run would lift what deletes records of {names(sorted(lifted), 20)}.")
        for finding in findings:
            self.context.note(f"A run would be refused: {finding}")
        self._planned = chains
        self._tell_plan(chains)

    @contextmanager
    def _targets(self) -> Iterator[Targets]:
        """The topics of the cluster that records go to."""
        typed = self._typed
        admin = admin_client(dict(self.context.admin_settings))
        try:
            now_ms = int(time.time() * 1000)
            yield Targets(admin, typed.must_be, typed.accepted, typed.replication, now_ms, typed.lifts)
        finally:
            admin.close()

    def _is_empty(self, topic: str, found: Collection[str]) -> bool:
        """Whether a topic was backed up without a record."""
        return topic not in found and topic not in INTERNAL_TOPICS and self._typed.selects(topic)

    def _without_records(self, wanted: Mapping[str, Wanted], there: Collection[str]) -> dict[str, Wanted]:
        """Topics to create of which the backup has no record, by their new names."""
        new = {self._typed.target_of(topic): (topic, facts) for topic, facts in self._empty.items()}
        return {
            target: Wanted(topic, facts.partitions, {}, None, facts)
            for target, (topic, facts) in new.items()
            if target not in wanted and target not in there
        }

    def _findings(
        self,
        targets: Targets,
        wanted: Mapping[str, Wanted],
        there: Mapping[str, TopicInfo],
        known: Mapping[TopicPartition, Progress],
    ) -> list[str]:
        topics = {one.topic for one in wanted.values()}
        finished = {tp: one for tp, one in known.items() if tp.topic not in topics}
        lost = targets.lost(finished, self._typed.target_of)
        missing = {*(wanted.keys() - there.keys()), *self._without_records(wanted, targets.names())}
        return [*targets.findings(wanted, there), *targets.not_creatable(missing), *lost, *self._of_schemas(topics)]

    def _prepared(self, wanted: Mapping[str, Wanted], known: Mapping[TopicPartition, Progress]) -> Prepared:
        """Check the topics that records go to, and create those that are missing.

        Raises:
            ConfigError: names everything that is wrong with them.
        """
        with self._targets() as targets:
            there = targets.existing(wanted)
            if findings := self._findings(targets, wanted, there, known):
                raise refused(findings)
            missing = {target: one for target, one in wanted.items() if target not in there}
            missing |= self._without_records(wanted, targets.names())
            made = targets.made_before(wanted, there)
            for note in (*targets.notes(wanted, there), *map(told_of_made, made.items()), *targets.create(missing)):
                self.context.note(note)
            there = targets.existing(wanted)
            targets.check_created(wanted, there, missing)
            limits, to_lift = targets.limits(there), targets.to_lift(there)
            later = {target: settings_after(one.original) for target, one in missing.items()} | to_lift | made
            found = {target: (info.topic_id, limits[target]) for target, info in there.items()}
            return Prepared(found, to_lift, later)

    def _lift(self) -> None:
        """Keep everything in topics that exist: what they had is committed by now."""
        if not self._to_lift:
            return
        with self._targets() as targets:
            for topic, before in sorted(self._to_lift.items()):
                change(targets.admin, topic, {name: KEEPS_ALL[name] for name in before})
                shown = ", ".join(f"{name}={value}" for name, value in before.items())
                self.context.note(
                    f"{topic} keeps everything while it is restored. It had {shown}, which `airflow-connect restore"
                    " settings` sets again."
                )

    def _of_schemas(self, topics: Collection[str]) -> list[str]:
        """What is wrong with the schemas of the registry of the restored topics, if it is named."""
        settings = settings_to_reach(TARGET, self.config)
        if not settings:
            return []
        from airflow_connect.connectors.restore.schemas import findings
        from airflow_connect.registry.client import open_registry

        schemas = self._documents.schemas_of(topics)
        if not schemas:
            self.context.note(
                f"The backup has no schemas of topic {names(sorted(topics))}, so none is compared with the registry."
            )
        return findings(open_registry(TARGET, settings), schemas)

    def _wanted(
        self,
        backup: Backup,
        chains: Sequence[Chain],
        known: Mapping[TopicPartition, Progress],
        oldest: Mapping[TopicPartition, int],
    ) -> dict[str, Wanted]:
        by_topic: dict[str, list[Chain]] = {}
        for chain in chains:
            by_topic.setdefault(chain.topic, []).append(chain)
        originals = self._documents.facts_of(by_topic)
        told = told_of_topics(self._documents, chains)
        for note in (*self._documents.notes, *self._documents.lacks(backup.chains, by_topic), *told):
            self.context.note(note)
        found: dict[str, Wanted] = {}
        for topic, its in by_topic.items():
            target = self._typed.target_of(topic)
            if target in found:
                raise ConfigError(
                    f"Topics {found[target].topic} and {topic} of the backup would both be restored to {target}.",
                    code="restore.same_target",
                    config_path=RestoreKeys.rename.name,
                    suggestion="Give them different names, or restore one of them.",
                )
            numbers = [tp.partition for tp in (*backup.chains, *known) if tp.topic == topic]
            progress = {number: known.get(TopicPartition(topic, number)) for number in sorted(set(numbers))}
            stamps = [oldest[one.topic_partition] for one in its if one.topic_partition in oldest]
            original = originals.get(topic)
            partitions = max(max(numbers) + 1, 0 if original is None else original.partitions)
            found[target] = Wanted(topic, partitions, progress, min(stamps, default=None), original)
        return found

    def _readable(self, chains: Sequence[Chain]) -> tuple[list[Chain], dict[TopicPartition, int]]:
        """The chains whose first file can be read, and its oldest timestamp; the others are left out.

        Raises:
            DataError: a file holds something other than whole records: the wrong topic was chosen.
        """
        found, oldest = [], {}
        for chain in chains:
            tp = chain.topic_partition
            try:
                stamp = FileReader(self._store, self._typed.file_format, tp).oldest(first_to_read(chain))
            except DataError as error:
                if error.code == NO_BACKUP:
                    raise
                self.context.leave_out(f"{tp} of the backup from offset {chain.progress.position} on", error)
                continue
            found.append(chain)
            if stamp is not None:
                from_ms = None if chain.progress.passed else self._typed.from_ms
                oldest[tp] = stamp if from_ms is None else max(stamp, from_ms)
        return found, oldest

    def _claimed(self, chains: Sequence[Chain], prepared: Prepared) -> list[Chain]:
        found = []
        for chain in chains:
            target = self._typed.target_of(chain.topic)
            topic_id, limits = prepared.targets[target]
            before = settings_in(chain.progress.later, target) if chain.progress.topic_id == topic_id else {}
            later = text_of({**before, **prepared.later.get(target, {})})
            progress = chain.progress.after(target=target, topic_id=topic_id, run=self.context.run_id, later=later)
            found.append(chain.claimed(progress, *limits))
        return found

    def _tell_plan(self, chains: Sequence[Chain]) -> None:
        files = sum(len(chain.files) for chain in chains)
        size = sum(chain.size_bytes for chain in chains)
        parts = names((f"{chain.topic_partition} from offset {chain.progress.position}" for chain in chains), 20)
        self.context.note(
            f"To restore: {plural(files, 'file')} of {plural(len(chains), 'partition')}, {plural(size, 'byte')}"
            + (f": {parts}." if parts else ".")
        )


class S3SourceTask(RestoreTask):
    """Restores a backup in a bucket."""

    config_class = S3RestoreConfig


class HdfsSourceTask(RestoreTask):
    """Restores a backup in HDFS."""

    config_class = HdfsRestoreConfig


class LocalSourceTask(RestoreTask):
    """Restores a backup in a directory."""

    config_class = LocalRestoreConfig


class S3SourceConnector(RestoreConnector):
    """`io.confluent.connect.s3.source.S3SourceConnector`: objects of a bucket back into topics."""

    config_def = S3RestoreConfig.config_def()
    task_class = S3SourceTask

    def read_config(self, config: Mapping[str, str]) -> RestoreConfig:
        """See `RestoreConnector`."""
        return S3RestoreConfig.from_config(config)


class HdfsSourceConnector(RestoreConnector):
    """Files in HDFS back into topics."""

    config_def = HdfsRestoreConfig.config_def()
    task_class = HdfsSourceTask

    def read_config(self, config: Mapping[str, str]) -> RestoreConfig:
        """See `RestoreConnector`."""
        return HdfsRestoreConfig.from_config(config)


class LocalSourceConnector(RestoreConnector):
    """Files of a directory back into topics."""

    config_def = LocalRestoreConfig.config_def()
    task_class = LocalSourceTask

    def read_config(self, config: Mapping[str, str]) -> RestoreConfig:
        """See `RestoreConnector`."""
        return LocalRestoreConfig.from_config(config)
