"""The Iceberg sink as a connector class: its keys, its task, its publisher, and what it promises."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_connect.api.publishing import LeftoverPattern
from airflow_connect.api.sink import Splitting, StagingSinkConnector
from airflow_connect.api.sink_state import PlannedState, StateAfter
from airflow_connect.connectors.iceberg.tables import IcebergConfig
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.api.offsets import OffsetRange
    from airflow_connect.api.sink_state import CopiedRun, PlannedRun
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.connectors.iceberg.publisher import IcebergPublisher
    from airflow_connect.documents.run import PublishedRun
    from airflow_connect.documents.run_tables import TableCommit


class IcebergSinkConnector(StagingSinkConnector):
    """`org.apache.iceberg.connect.IcebergSinkConnector`: topics as tables of a lake, one snapshot for each run."""

    config_def = IcebergConfig.config_def()
    task_class = "airflow_connect.connectors.iceberg.task:IcebergSinkTask"
    _publisher: IcebergPublisher | None = None

    def check_config(self, config: Mapping[str, str]) -> None:
        """Read the whole configuration.

        Raises:
            ConfigError: a key is wrong.
            MissingPackageError: pyiceberg is not installed.
        """
        from airflow_connect.connectors.iceberg import library  # noqa: F401 (raises what is missing)
        from airflow_connect.connectors.iceberg.catalogs import catalog_settings

        typed = IcebergConfig.from_config(config)
        typed.check()
        catalog_settings(typed, self.context.aws)

    @classmethod
    def notes_on_config(cls, config: Mapping[str, str]) -> Sequence[str]:
        """That a table has every version of a row, if the original would be told how to identify rows."""
        try:
            typed = IcebergConfig.from_config(config)
        except ConfigError:
            return ()  # The check of the configuration says what is wrong.
        if not typed.id_columns and not any(key.endswith(".id-columns") for key in config):
            return ()
        return ("Rows are appended. The columns that identify rows are recorded in tables, and change nothing else.",)

    def store_name(self, config: Mapping[str, str]) -> str:
        """The catalog."""
        return f"iceberg://{IcebergConfig.from_config(config).catalog}"

    def splitting(self) -> Splitting:
        """Rows of a table have no order, so several tasks may copy one partition."""
        return Splitting()

    def publisher(self) -> IcebergPublisher:
        """What commits; opens the catalog on first use."""
        from airflow_connect.connectors.iceberg.catalogs import open_catalog
        from airflow_connect.connectors.iceberg.publisher import IcebergPublisher

        if self._publisher is None:
            typed, aws = IcebergConfig.from_config(self.config), self.context.aws
            self._publisher = IcebergPublisher(
                self.config["name"], typed, lambda: open_catalog(typed, aws), keeps=self.context.overwrite
            )
        return self._publisher

    def plan_state(self, run: PlannedRun) -> PlannedState:
        """Whether the tables of earlier runs still have what was committed.

        Raises:
            ConnectError: the catalog refuses, or does not answer.
        """
        from airflow_connect.connectors.iceberg import history

        if not run.ranges or not history.tables_of(run.kept):
            return PlannedState()
        kept, notes = history.changed(run.kept, self.config["name"], self.publisher().table)
        return PlannedState(kept=kept, notes=notes)

    def state_after(self, run: CopiedRun) -> StateAfter:
        """The tables that the run commits to, beside those of earlier runs."""
        from airflow_connect.connectors.iceberg import history

        settings_of = IcebergConfig.from_config(self.config).settings_of
        kept = history.after(run.planned.kept, run.files, self.context.run_id, lambda name: settings_of(name).branch)
        return StateAfter(kept)

    def prepare(self, files: Sequence[StagedFile]) -> Sequence[StagedFile]:
        """Write manifests, and choose the ids of snapshots."""
        return self.publisher().prepare(files, self.context.run_id)

    def table_commits(self, run: PublishedRun) -> Sequence[TableCommit]:
        """The snapshots of a run."""
        from airflow_connect.connectors.iceberg.commits import table_commit
        from airflow_connect.connectors.iceberg.publisher import by_table

        catalog = IcebergConfig.from_config(self.config).catalog
        return [table_commit(catalog, name, files) for name, files in by_table(run.files).items()]

    def leftovers(self, ranges: Sequence[OffsetRange]) -> LeftoverPattern:
        """Files in the folder of the run, below each of its tables."""
        typed, run_id = IcebergConfig.from_config(self.config), self.context.run_id
        tables = typed.tables or ("*",)
        return LeftoverPattern(
            store=self.store_name(self.config),
            prefixes=tuple(f"{name}#{run_id}" for name in tables),
            pattern=f"(?s).*/ac-{re.escape(run_id)}/.*",
            ranges=tuple(ranges),
        )
