"""The connector class of the file source: which files, which tasks, and manually altered offsets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_connect.api.source import ExactlyOnceSupport, OffsetChanges, SourceConnector, SourceOffset, SourcePartition
from airflow_connect.connectors.file_stream.source.config import FileSourceConfig
from airflow_connect.connectors.file_stream.source.discover.listing import NO_MATCH, Listing, list_files
from airflow_connect.connectors.file_stream.source.discover.stdin import spool
from airflow_connect.connectors.file_stream.source.file_offsets import FILENAME, POSITION, FileRange, FileState
from airflow_connect.connectors.file_stream.source.offsets.notes import listed
from airflow_connect.connectors.file_stream.source.offsets.reconciliation import (
    OffsetReconciler,
    Offsets,
    ReconciledOffsets,
    committed_states,
)
from airflow_connect.connectors.file_stream.source.read.content import NONE
from airflow_connect.connectors.file_stream.source.task import FileStreamSourceTask
from airflow_connect.connectors.file_stream.source.waiting import copies_something
from airflow_connect.connectors.file_stream.source.work import ASSIGNMENT, Item, assigned, assignment, plan_work
from airflow_connect.counting import counted
from airflow_connect.errors import ConfigError, OffsetError
from airflow_connect.stores.file_system import GoneError, changed_meanwhile
from airflow_connect.stores.file_systems import FileSystems
from airflow_connect.stores.local.file_system import LocalFileSystem


class FileStreamSourceConnector(SourceConnector):
    """`org.apache.kafka.connect.file.FileStreamSourceConnector`: lines of files to a topic."""

    config_def = FileSourceConfig.config_def()
    task_class = FileStreamSourceTask
    version = "1.0"

    _file_systems: FileSystems | None = None
    _found: tuple[Listing, ReconciledOffsets] | None = None
    """What `reconcile_offsets` has found, for `task_configs` of the same run."""

    def start(self, config: Mapping[str, str]) -> None:
        """See `Connector`."""
        super().start(config)
        self._typed = FileSourceConfig.from_config(config)
        self._file_systems = self._typed.file_systems(self.context.aws)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One configuration for each task that has something to read; none if there is nothing to read.

        Raises:
            OffsetError: a committed offset cannot be used.
        """
        if self._typed.is_stdin:
            work = self._standard_input()
        else:
            # Nothing is reconciled yet if this call only shows a plan.
            listing, reconciled = self._found or self._reconciled(self.context.offset_reader.committed())
            self._found = None
            self._tell(listing, reconciled)
            work = self._work(listing, reconciled, max_tasks)
        return [{**self.config, ASSIGNMENT: assignment(items)} for items in work]

    def source_partitions(self, task_config: Mapping[str, str]) -> Iterable[SourcePartition]:
        """Those of the files, and ranges of files, that the task reads: it never reads others."""
        return [item.file_range.partition for item in assigned(task_config[ASSIGNMENT])]

    def reconcile_offsets(self, committed: Iterable[tuple[SourcePartition, SourceOffset]]) -> OffsetChanges:
        """See `SourceConnector` and `offsets/reconciliation`."""
        if self._typed.is_stdin:
            return ()
        self._found = self._reconciled(committed)
        return self._found[1].changes

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Files can be read again, standard input cannot (as in Kafka Connect)."""
        has_files = bool(config.get(FileSourceConfig.file.name) or config.get(FileSourceConfig.files.name))
        return ExactlyOnceSupport.SUPPORTED if has_files else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None]
    ) -> bool:
        """Check offsets that are being altered; the messages are those of Kafka Connect's FileStreamSourceConnector."""
        for partition, offset in offsets.items():
            if offset is None:
                continue  # anything may be deleted, so that invalid offsets can be removed
            if POSITION not in offset:
                raise _refused(f"Offset objects should either be null or contain the key '{POSITION}'")
            position = offset[POSITION]
            if not isinstance(position, int) or isinstance(position, bool):
                raise _refused(f"The value for the '{POSITION}' key in the offset is expected to be a Long value")
            if position < 0:
                raise _refused(f"The value for the '{POSITION}' key in the offset should be a non-negative value")
            if FILENAME not in dict(partition):
                raise _refused(f"Partition objects should contain the key '{FILENAME}'")
        return True

    def stop(self) -> None:
        """See `Connector`."""
        if self._file_systems is not None:
            self._file_systems.close()

    @property
    def _opened(self) -> FileSystems:
        if self._file_systems is None:
            raise RuntimeError("The connector was not started.")
        return self._file_systems

    def _reconciled(
        self, committed: Iterable[tuple[SourcePartition, SourceOffset]]
    ) -> tuple[Listing, ReconciledOffsets]:
        offsets = list(committed)
        before, _ = committed_states(offsets)
        found = self._reconciled_once(offsets, before)
        if found is None or self._begins_again(before, *found):
            # A listing takes time: a file that is rotated meanwhile may be in it under neither of its names. It would
            # be copied twice.
            found = self._reconciled_once(offsets, before, is_last=True)
        assert found is not None
        for note in found[1].notes:
            self.context.note(note)
        return found

    def _reconciled_once(
        self, offsets: Offsets, before: Mapping[str, FileState], *, is_last: bool = False
    ) -> tuple[Listing, ReconciledOffsets] | None:
        """The files, and the offsets that belong to them; None: a file has changed, which the configuration forbids."""
        listing = list_files(self._typed, self._opened, {name: state.position for name, state in before.items()})
        reconciler = OffsetReconciler(self._typed, self._opened, listing, int(time.time() * 1000))
        try:
            return listing, reconciler.reconcile(offsets)
        except GoneError as error:
            raise changed_meanwhile(str(error)) from error
        except OffsetError as error:
            if is_last or error.code != "file.changed":
                raise
            return None

    def _begins_again(self, before: Mapping[str, FileState], listing: Listing, found: ReconciledOffsets) -> bool:
        """Whether a file is read from its beginning again, or its offset is deleted because it is missing."""
        kept = {name: state for name, state in before.items() if state.position and name not in found.moved}
        is_shorter = any(name in found.states and found.states[name].position < kept[name].position for name in kept)
        files = listing.files.keys() | listing.beside.keys()
        return is_shorter or (self._typed.forgets_missing and not kept.keys() <= files)

    def _work(self, listing: Listing, reconciled: ReconciledOffsets, max_tasks: int) -> list[list[Item]]:
        try:
            files = {**listing.files, **reconciled.proven}
            work = plan_work(self._typed, self._opened, files, reconciled, max_tasks)
        except GoneError as error:
            raise changed_meanwhile(str(error)) from error
        items = [item for held in work for item in held]
        if copies_something(items, self._typed, self._opened):
            return work
        waiting = [item.file.name for item in items if item.codec == NONE]
        if waiting:
            what = "event" if self._typed.multiline else "line without a line end"
            self.context.note(f"The last {what} of {counted(len(waiting), 'file')} waits, because more of it may be"
                f" written: {listed(waiting)}. With last.line=read it is copied now.")  # fmt: skip
        return []

    def _tell(self, listing: Listing, reconciled: ReconciledOffsets) -> None:
        for entry, why in listing.empty.items():
            # An empty landing folder is nothing to tell once files have arrived there.
            if not (reconciled.states and why == NO_MATCH):
                self.context.note(f"{entry} is not read: {why}.")
        if listing.linked_directories:
            what = counted(len(listing.linked_directories), "directory is a link", "directories are links")
            self.context.note(f"{what}, and not followed: {listed(listing.linked_directories)}. To read such a"
                " directory, name it in files, with a slash at the end.")  # fmt: skip
        if listing.others:
            names = listed([f"{name} ({kind})" for name, kind in listing.others.items()])
            which = "that files selects" if self._typed.file is None else "that may be of a rotated file"
            what = counted(len(listing.others), f"name {which} is", f"names {which} are")
            hint = " files.exclude can leave such names out." if self._typed.file is None else ""
            self.context.note(f"{what} not of a file: {names}. Nothing is read from there.{hint}")
        if listing.aliases:
            names = listed([f"{alias} -> {name}" for alias, name in listing.aliases.items()])
            what = counted(
                len(listing.aliases), "name is a link to a file that is", "names are links to files that are"
            )
            self.context.note(f"{what} read under another name: {names}.")

    def _standard_input(self) -> list[list[Item]]:
        if self.context.only_plans:
            self.context.note("Standard input is read to its end when the run starts.")
            return [[]]
        file = LocalFileSystem().find(spool())
        if file is None or not file.size:
            return []
        return [[Item(FileRange(None), file, NONE, 0, file.size)]]


def _refused(message: str) -> ConfigError:
    return ConfigError(
        message + ".",
        code="offset.refused",
        suggestion='Write partition {"filename": "/path/of/file"} and offset {"position": 0}, or null to delete.',
    )
