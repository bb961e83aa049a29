"""The file source as a connector class: which files, which tasks, and offsets that people alter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from airflow_connect.api.errors import ConfigError
from airflow_connect.api.source import ExactlyOnceSupport, OffsetChanges, SourceConnector, SourceOffset, SourcePartition
from airflow_connect.connectors.file_source.config import FileSourceConfig, config_def
from airflow_connect.connectors.file_source.content import NONE
from airflow_connect.connectors.file_source.keys import FILE, FILES
from airflow_connect.connectors.file_source.listing import list_files
from airflow_connect.connectors.file_source.offsets import FILENAME, POSITION, Part
from airflow_connect.connectors.file_source.places.local import LocalPlace
from airflow_connect.connectors.file_source.places.opening import Places
from airflow_connect.connectors.file_source.places.place import FoundFile
from airflow_connect.connectors.file_source.settling import Settled, Settling
from airflow_connect.connectors.file_source.stdin import spool
from airflow_connect.connectors.file_source.task import FileStreamSourceTask
from airflow_connect.connectors.file_source.work import ASSIGNMENT, Item, assignment, plan_work


class FileStreamSourceConnector(SourceConnector):
    """`org.apache.kafka.connect.file.FileStreamSourceConnector`: lines of files to a topic."""

    config_def = config_def()
    task_class = FileStreamSourceTask
    version = "1.0"

    _places: Places | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """See `Connector`."""
        super().start(config)
        self._typed = FileSourceConfig.from_config(config)
        self._places = self._typed.places(self.context.aws)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One for each task with something to read, with what it reads; none where there is nothing.

        Raises:
            OffsetError: a committed offset cannot be used.
        """
        if self._typed.is_stdin:
            work = self._standard_input()
        else:
            committed = list(self.context.offset_reader.committed())
            files = list_files(self._typed, self._opened)
            # What the last run left may not be settled yet when somebody only looks at the plan.
            settled = self._settled(committed, files)
            self._tell(settled)
            work = plan_work(self._typed, self._opened, files, settled, max_tasks)
        return [{**self.config, ASSIGNMENT: assignment(items)} for items in work]

    def settle_offsets(self, committed: Iterable[tuple[SourcePartition, SourceOffset]]) -> OffsetChanges:
        """See `SourceConnector` and `settling`."""
        if self._typed.is_stdin:
            return ()
        offsets = list(committed)
        settled = self._settled(offsets, list_files(self._typed, self._opened) if offsets else {})
        self._tell(settled)
        return settled.changes

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Files can be read again, the standard input cannot (as in Kafka Connect)."""
        has_files = bool(config.get(FILE) or config.get(FILES))
        return ExactlyOnceSupport.SUPPORTED if has_files else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[tuple[tuple[str, Any], ...], SourceOffset | None]
    ) -> bool:
        """Check offsets that somebody sets, with the words of Kafka Connect's FileStreamSourceConnector."""
        for partition, offset in offsets.items():
            if offset is None:
                continue  # anything may be deleted, so that what is wrong can be got rid of
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
        if self._places is not None:
            self._places.close()

    @property
    def _opened(self) -> Places:
        if self._places is None:
            raise RuntimeError("The connector was not started.")
        return self._places

    def _settled(
        self, committed: list[tuple[SourcePartition, SourceOffset]], files: Mapping[str, FoundFile]
    ) -> Settled:
        return Settling(self._typed, self._opened, files).settle(committed)

    def _tell(self, settled: Settled) -> None:
        for note in settled.notes:
            self.context.note(note)

    def _standard_input(self) -> list[list[Item]]:
        if self.context.only_plans:
            self.context.note("The standard input is read when the run starts, up to its end.")
            return [[]]
        file = LocalPlace().find(spool())
        if file is None or not file.size:
            return []
        return [[Item(Part(None), file, NONE, 0, file.size)]]


def _refused(message: str) -> ConfigError:
    return ConfigError(
        message + ".",
        code="offset.refused",
        suggestion='Write partition {"filename": "/path/of/file"} and offset {"position": 0}, or null to delete.',
    )
