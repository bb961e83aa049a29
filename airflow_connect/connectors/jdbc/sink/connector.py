"""JdbcSink as a connector class: its keys, its task, what it promises, and the epoch of each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.cluster_facts import TopicChange
from airflow_connect.api.sink import Delivery, SinkConnector
from airflow_connect.api.sink_state import PlannedState, StateAfter
from airflow_connect.connectors.jdbc.sink import keys
from airflow_connect.connectors.jdbc.sink.config import JdbcSinkConfig
from airflow_connect.connectors.jdbc.sink.left import (
    OffsetsAtPlan,
    after,
    last_run,
    left_by_runs,
    notes_on_shared,
    state_at_plan,
)
from airflow_connect.converters.keys_in_kafka import notes_on_spread
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.sink_state import CopiedRun, PlannedRun

_EPOCH = "epoch"


class JdbcSinkConnector(SinkConnector):
    """`io.confluent.connect.jdbc.JdbcSinkConnector`: records as rows of tables."""

    config_def = JdbcSinkConfig.config_def()
    task_class = "airflow_connect.connectors.jdbc.sink.task:JdbcSinkTask"
    delivery = Delivery.TRANSACTIONAL

    def __init__(self) -> None:
        """Has not looked at the offsets table yet."""
        self._found = OffsetsAtPlan()

    @classmethod
    def replaces_by_key(cls, config: Mapping[str, str], *, same_offsets: bool = False) -> bool:
        """With upserts, updates and deletes."""
        try:
            return JdbcSinkConfig.from_config(config).finds_rows_by_key
        except ConfigError:
            return False  # The check of the configuration says what is wrong.

    @classmethod
    def delivery_for(cls, config: Mapping[str, str]) -> Delivery:
        """By the offsets table; without one, by rows that replace themselves; else at least once."""
        key = JdbcSinkConfig.offsets_table.name
        if (config.get(key) or "").strip() or key not in config:
            return Delivery.TRANSACTIONAL
        parsed = {name: (config.get(name) or default).strip().lower() for name, default in _MODES.items()}
        replaces = parsed["insert.mode"] == "upsert" and parsed["pk.mode"] != "none"
        return Delivery.IDEMPOTENT if replaces else Delivery.AT_LEAST_ONCE

    @classmethod
    def notes_on_config(cls, config: Mapping[str, str]) -> Sequence[str]:
        """Whether the sink is untested on this database."""
        database = _UNTESTED.get(JdbcSinkConfig.from_config(config).connection.address.database)
        return (_NOT_TESTED.format(database=database),) if database else ()

    def check_config(self, config: Mapping[str, str]) -> None:
        """Read the whole configuration, the address of the database included.

        Raises:
            ConfigError: a key is wrong.
            MissingPackageError: the driver is not installed.
        """
        _ = JdbcSinkConfig.from_config(config).connection

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """The epoch of the run, which is claimed now: tasks of earlier runs can no longer write.

        Raises:
            ConnectError: the database refused or did not answer.
        """
        config = JdbcSinkConfig.from_config(self.config)
        if not config.offsets_table:
            return [{_EPOCH: "0"}] * max_tasks
        from airflow_connect.connectors.jdbc.sink.offsets import OffsetsTable
        from airflow_connect.connectors.jdbc.sink.sessions import prepare, single_statements
        from airflow_connect.databases.connecting import Database

        with Database(config.connection) as database, database.connected() as connection:
            offsets = OffsetsTable(database, config.offsets_table, config.name)
            with database.failures(f"claim the offsets in {config.offsets_table}"):
                prepare(connection)
                with single_statements(connection):
                    offsets.ensure(connection)
                    epoch = offsets.claim(connection, self.context.run_id)
        return [{_EPOCH: str(epoch)}] * max_tasks

    def kept_offsets(
        self, topic_ids: Mapping[TopicPartition, str], last_run_id: str, kept: Mapping[str, Any]
    ) -> Mapping[TopicPartition, int]:
        """The offsets in the database that are before those that earlier runs have left there.

        Raises:
            ConnectError: the database refused or did not answer.
        """
        config = JdbcSinkConfig.from_config(self.config)
        if not config.offsets_table:
            return {}
        from airflow_connect.connectors.jdbc.sink.offsets import OffsetsTable
        from airflow_connect.connectors.jdbc.sink.sessions import prepare, single_statements
        from airflow_connect.databases.connecting import Database

        with Database(config.connection) as database, database.connected() as connection:
            offsets = OffsetsTable(database, config.offsets_table, config.name)
            with database.failures(f"read the offsets in {config.offsets_table}"):
                prepare(connection)
                with single_statements(connection):
                    set_back = offsets.set_back(connection, topic_ids, last_run_id, left_by_runs(kept))
        self._found = OffsetsAtPlan(set_back, offsets.seen, offsets.missing)
        return set_back

    def plan_state(self, run: PlannedRun) -> PlannedState:
        """What earlier runs have left in the offsets table, and what it has now."""
        return state_at_plan(run, self._found)

    def state_after(self, run: CopiedRun) -> StateAfter:
        """The same with what this run has left there; notes about rows in no order, and of earlier runs."""
        config = JdbcSinkConfig.from_config(self.config)
        kept = after(run, last_run(run.planned.kept))
        shared = [*notes_on_shared(run, kept), *notes_on_spread(run, "row", _SPREAD)]
        if not (config.creates and config.offsets_table and run.reports):
            return StateAfter(kept=kept, notes=shared)
        from airflow_connect.connectors.jdbc.sink.offsets import OffsetsTable
        from airflow_connect.connectors.jdbc.sink.sessions import prepare, single_statements
        from airflow_connect.databases.connecting import Database

        with Database(config.connection) as database, database.connected() as connection:
            offsets = OffsetsTable(database, config.offsets_table, config.name)
            with database.failures(f"read {config.offsets_table}"):
                prepare(connection)
                with single_statements(connection):
                    told = offsets.untold(connection, self.context.run_id, last_run(run.planned.kept))
        return StateAfter(kept=after(run, self.context.run_id), notes=[*shared, *told])

    def notes_on_changes(self, changes: Sequence[TopicChange]) -> Sequence[str]:
        """What becomes of rows whose key has moved to another partition, or is an offset of a topic that is gone."""
        config = JdbcSinkConfig.from_config(self.config)
        if config.mapping.pk_mode == keys.KAFKA and config.insert_mode != keys.INSERT:
            return tuple(_RECREATED.format(topic=change.topic) for change in changes if change.is_recreated)
        if not config.finds_rows_by_key:
            return ()
        return tuple(
            f"Topic {topic} has {now} partitions, and had {before} at the last commit. {_NO_ORDER}"
            for topic, before, now, is_recreated in changes
            if not is_recreated
        )

    def stage_without_columns(self) -> str:
        """See `ColumnarSinkConnector`."""
        config = JdbcSinkConfig.from_config(self.config)
        if config.insert_mode == keys.UPDATE:
            return f"{JdbcSinkConfig.insert_mode}={keys.UPDATE}"
        database = config.connection.address.database
        return "" if database in ("postgresql", "mysql") else f"the database ({database})"

    def takes_whole_records(self) -> bool:
        """It writes values."""
        return False

    def deletes_by_null(self) -> bool:
        """With `delete.enabled`."""
        return JdbcSinkConfig.from_config(self.config).deletes

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None], topic_ids: Mapping[str, str]
    ) -> bool:
        """Set the offsets in the database, too: records after them are written again.

        Raises:
            ConnectError: the database refused or did not answer.
        """
        parsed = JdbcSinkConfig.from_config(config)
        if not parsed.offsets_table:
            return True
        from airflow_connect.connectors.jdbc.sink.offsets import OffsetsTable
        from airflow_connect.connectors.jdbc.sink.sessions import prepare, single_statements
        from airflow_connect.databases.connecting import Database

        with Database(parsed.connection) as database, database.connected() as connection:
            table = OffsetsTable(database, parsed.offsets_table, parsed.name)
            with database.failures(f"set the offsets in {parsed.offsets_table}"):
                prepare(connection)
                with single_statements(connection):
                    table.ensure(connection)
                table.alter(connection, offsets, topic_ids)
        return True


_UNTESTED = {"mssql": "SQL Server", "oracle": "Oracle"}
_NOT_TESTED = (
    "The JDBC sink is untested on {database}: its statements follow Confluent's sink, and were never run on a server."
    " Compare the rows with the topic before you rely on them."
)
_RECREATED = (
    "Topic {topic} was deleted and created again since the last commit. The keys of rows are topic, partition and"
    " offset (pk.mode=kafka), so its records replace rows of the old topic that have the same key. Use another table if"
    " both must be kept."
)
_NO_ORDER = (
    "A key may now be in another partition, and there is no order between partitions: an older record of a key may be"
    " written over a newer one while both are copied. If rows must be right, empty the table, and copy the topic again:"
    " the records of before the change in a run of their own."
)
_SPREAD = (
    "There is no order between partitions: an older record of a row may be written over a newer one. If records of one"
    " row differ, let the producer use the key of the row as key, or a topic with one partition."
)
_MODES = {"insert.mode": "insert", "pk.mode": "none"}
