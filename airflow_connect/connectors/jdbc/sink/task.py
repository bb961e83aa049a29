"""The task of the JDBC sink: records to rows, and batches to transactions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

from airflow_connect.api.columns import NullValues
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.read_ahead import ReadAhead
from airflow_connect.api.schema import Schema, Type
from airflow_connect.api.sink import SinkTask
from airflow_connect.connectors.jdbc.sink import keys
from airflow_connect.connectors.jdbc.sink.batches import Batch, RowPlan, place_of
from airflow_connect.connectors.jdbc.sink.config import JdbcSinkConfig
from airflow_connect.connectors.jdbc.sink.executing import ChunkExecutor
from airflow_connect.connectors.jdbc.sink.fields import fields_of, inferred_schema, unused_key_fields
from airflow_connect.connectors.jdbc.sink.hidden_fields import HiddenFields, hidden_by
from airflow_connect.connectors.jdbc.sink.keys import JdbcSinkKeys as Keys
from airflow_connect.connectors.jdbc.sink.left import (
    COLUMNS,
    FILLED,
    IDENTITIES,
    NEXT_OFFSET,
    columns_of_tables,
    identities_of_tables,
    left_by_runs,
    seen_at_plan,
    set_in_kafka,
)
from airflow_connect.connectors.jdbc.sink.resumed import Made, Resumed, superseded
from airflow_connect.connectors.jdbc.sink.statements.dialects import statements_of
from airflow_connect.connectors.jdbc.sink.tables import Tables
from airflow_connect.connectors.jdbc.sink.values import Binding
from airflow_connect.connectors.jdbc.sink.writing import RunOfTask, Writer
from airflow_connect.converters.keys_in_kafka import KeysInKafka
from airflow_connect.databases.connecting import Database
from airflow_connect.errors import ConfigError, DataError, SchemaError, UnavailableError

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.connectors.jdbc.sink.columns.chunk import ColumnChunk
    from airflow_connect.connectors.jdbc.sink.offsets import Position
    from airflow_connect.databases.identifiers import TableId

EPOCH = "epoch"
"""Key of a task's own configuration: the epoch that the driver has claimed."""
ROWS_PER_TRANSACTION = 10_000
BYTES_PER_TRANSACTION = 8 << 20
FEWEST_IN_COLUMNS = 500
"""Records. Fewer are worth no transaction of their own: as rows, they wait for others."""


class JdbcSinkTask(SinkTask):
    """Writes rows."""

    repeats_put = False  # Transactions are repeated here, with `max.retries`.
    read_ahead = ReadAhead(partition_records=10_000, fetched_bytes=4 << 20, column_records=32_768)
    """A database takes rows more slowly than Kafka delivers them: more records would only wait in memory."""

    def __init__(self) -> None:
        """Opens nothing."""
        self._config: JdbcSinkConfig | None = None
        self._database: Database | None = None
        self._writer: Writer | None = None
        self._binding: Binding | None = None
        self._batch = Batch()
        self._plans: dict[tuple[str, Schema | None, Schema | None], RowPlan] = {}
        self._tables: dict[str, TableId] = {}
        self._resumed: dict[TopicPartition, Resumed] = {}
        self._writes_columns = False
        self._filled: defaultdict[TableId, set[str]] = defaultdict(set)
        self._keys = KeysInKafka()
        self._hidden = HiddenFields()

    @property
    def needs_keys(self) -> bool:  # type: ignore[override]
        """Whether a key becomes columns."""
        return self._config is not None and self._config.mapping.pk_mode == keys.RECORD_KEY

    def start(self, config: Mapping[str, str]) -> None:
        """Read the configuration; does not connect yet.

        Raises:
            ConfigError: a key of the sink is wrong.
        """
        run = self.context.run
        self._config = settings = JdbcSinkConfig.from_config(run.config)
        self._database = database = Database(settings.connection)
        mapping = settings.mapping
        self._binding = Binding(
            database=database.dialect.name,
            zone=settings.connection.zone,
            date_zone=UTC if mapping.dates_in_utc else settings.connection.zone,
            replaces_null=mapping.replaces_null,
            timestamp_fields=mapping.timestamp_fields,
            per_second=mapping.per_second,
        )
        statements = statements_of(
            database.dialect.name, database.engine.dialect.paramstyle, holdlock=settings.holdlock
        )
        executor = ChunkExecutor(database, statements, settings.insert_mode, settings.batch_rows)
        self._writes_columns = executor.loader is not None
        tables = Tables(settings, database, statements, self._binding)
        tables.committed = columns_of_tables(run.state)
        tables.identified = identities_of_tables(run.state)
        run_of_task = RunOfTask(
            run.run_id,
            int(run.task_config.get(EPOCH, 0)),
            run.topic_ids,
            self.context.errant_record_reporter.report,
            self.context.leave_out,
        )
        self._writer = Writer(settings, database, tables, executor, run_of_task)

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Take the partitions over from earlier runs, and resume after what is in the database.

        Raises:
            FencedError: a later run has taken over.
            UnavailableError: the database went back since the run was planned.
        """
        assert self._config is not None and self._writer is not None
        starts = {r.topic_partition: r.start for r in self.context.ranges}
        taken = self._writer.take_over({partition: starts[partition] for partition in sorted(partitions)})
        self._refuse_earlier(taken)
        self._note_resumed(starts, taken)
        for partition, found in taken.items():
            if self._config.tolerates or found.errant:
                # Read again what a run has written that died before it committed: its dead letters died with it. So
                # it is if errors are not tolerated any more.
                self._resumed[partition] = Resumed(found)
            elif found.next_offset > starts[partition]:
                self.context.offset(partition, found.next_offset)

    def _refuse_earlier(self, taken: Mapping[TopicPartition, Position]) -> None:
        """Refuse a database that went back since the plan: the records that it lost are not those of this run."""
        assert self._config is not None and self._writer is not None
        for partition, seen in sorted(seen_at_plan(self.context.run.state).items()):
            found = taken.get(partition)
            if found is None or found.next_offset >= seen or self._writer.is_new(partition):
                continue
            raise UnavailableError(
                f"The offset of {partition} in {self._config.offsets_table} was {seen} when this run was planned, and"
                f" is {found.next_offset} now: the database has gone back to an earlier state meanwhile, such as by a"
                " failover to a replica that was behind. This task has written nothing.",
                code="jdbc.set_back",
                suggestion="Run again: the next run writes the records that the database lacks.",
            )

    def _note_resumed(self, starts: Mapping[TopicPartition, int], taken: Mapping[TopicPartition, Position]) -> None:
        """Say what this run cannot know of the records that the database has, or should have."""
        assert self._config is not None and self._writer is not None
        left, by_client = left_by_runs(self.context.run.state), set_in_kafka(self.context.run.state)
        for partition, found in taken.items():
            start, resumed = starts[partition], found.next_offset
            if resumed > start and partition in by_client and left.get(partition) == resumed:
                self.context.note(
                    f"{self._config.offsets_table} has the offset {resumed} of {partition}, where the last run has left"
                    f" it, and this run begins at {start}, because another client has set the group's offset back. The"
                    " records in between are NOT written again. To write them again, set the offsets of the connector"
                    " with this package (airflow-connect offsets set, or a task of Airflow), which sets both."
                )
            elif resumed > start:
                counted = "count as written" if self._config.tolerates or found.errant else "are in no count"
                self.context.note(
                    f"A run that ended before its commit has written the records of {partition} from {start} up to"
                    f" {resumed}. They are not written again, and {counted}. If the database left out some of them"
                    " without an error, such as updates that found no row, no report says so."
                )
            elif partition in left and resumed and self._writer.is_new(partition):
                self.context.note(
                    f"{self._config.offsets_table} had no offset of {partition}, although earlier runs have written its"
                    f" records up to {left[partition]}: the database is another one, or in an earlier state. This run"
                    f" writes {partition} from offset {resumed} on. If the records before are not in the database, set"
                    " the offsets of the connector back, to write them again."
                )

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Add rows to the batch; write it when it is large enough."""
        batch = self._batch
        for record in records:
            batch.passed(record)
            resumed = self._resumed.get(place_of(record)) if self._resumed else None
            if resumed is not None and self._is_written(record, resumed):
                continue
            try:
                made = self._made(record)
            except DataError as error:
                self.context.errant_record_reporter.report(record, error)
                batch.add_errant(record)
                continue
            if made is not None and resumed is not None and self._waits(made, resumed):
                resumed.wait(made)
            elif made is not None:
                self._add(made)
        if batch.count >= ROWS_PER_TRANSACTION or batch.size_bytes >= BYTES_PER_TRANSACTION:
            self._write()

    @property
    def null_values(self) -> NullValues:
        """By `delete.enabled` and the key for null values; see `NullDroppingSinkTask`."""
        assert self._config is not None
        # Of a partition that another attempt has begun, records count by where they are.
        is_needed = self._config.deletes or not self._config.ignores_null or bool(self._resumed)
        return NullValues.NEEDED if is_needed else NullValues.LEFT_OUT

    def count_null_values(self, count: int) -> None:
        """Nothing is kept of them."""

    def accepts_columns(self) -> bool:
        """Whether the database and `insert.mode` have a columnar form."""
        return self._writes_columns

    def put_columns(self, batches: Sequence[RecordColumns]) -> bool:
        """Write records in a transaction of their own; see `ColumnarSinkTask`."""
        assert self._writer is not None and self._config is not None
        first = batches[0]
        partition = TopicPartition(first.original_topic, first.original_partition)
        resumed = self._resumed.get(partition)
        if resumed is not None and int(first.offsets[0]) < resumed.next_offset:
            # In one of them: no record is in all batches.
            if resumed.waits or any(resumed.errant.intersection(batch.offsets.tolist()) for batch in batches):
                return False
            rest = [batch.filter(batch.offsets >= resumed.next_offset) for batch in batches]
            batches = [batch for batch in rest if len(batch)]
            if not batches:
                return True
        elif resumed is not None:
            self._add_waiting(resumed)
        chunks = self._chunks(batches)
        if chunks is None:
            return False
        self._write()  # Rows of earlier records come first.
        if self._writer.write_columns(Batch.of_columns(partition, chunks)):
            for chunk, batch in zip(chunks, batches, strict=True):
                self._hidden.see_columns(chunk, chunk.plan.hidden, batch)
            if self._config.finds_rows_by_key:
                for chunk in chunks:
                    self._filled[chunk.plan.table].add(partition.topic)
                self._see_keys(partition, batches, chunks)
            return True
        position = self._writer.position(partition)
        if position is not None and position.next_offset > int(first.offsets[0]):
            self._resumed[partition] = Resumed(position)  # Another attempt of the task has written some of them.
        return False

    def flush(self) -> tuple[()]:
        """Write what waits, after the last record."""
        for resumed in self._resumed.values():
            if resumed.is_seen:
                self._add_waiting(resumed)
            for made in resumed.take_waiting():
                self._report_superseded(made.record)
        self._write()
        return ()

    def details(self, partition: TopicPartition) -> dict[str, Any]:
        """The offset that is in the database now: the next run notices if it is less then."""
        assert self._writer is not None
        position = self._writer.position(partition)
        columns = self._writer.take_columns()
        found = {} if position is None else {NEXT_OFFSET: position.next_offset}
        filled = sorted(self._name(table) for table, topics in self._filled.items() if partition.topic in topics)
        members = {
            COLUMNS: columns,
            IDENTITIES: self._writer.take_identities(),
            FILLED: filled,
        } | self._keys.details(partition)
        return {**found, **{name: member for name, member in members.items() if member}}

    def _name(self, table: TableId) -> str:
        """The one name of a table that may be written in several ways: as the database takes it, in its own schema."""
        assert self._database is not None
        dialect = self._database.engine.dialect
        if dialect.name == "sqlite":
            return str(table).lower()
        folded = self._database.quoting.folded_table(table)
        own = folded.catalog if dialect.name in ("mysql", "mariadb") else folded.schema  # The rest has no effect.
        return folded.table if own in ("", dialect.default_schema_name) else f"{own}.{folded.table}"

    def abort(self) -> None:
        """Drop what waits; what was committed is found by the next run."""
        self._batch = Batch()

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Say what the database did not write without an error."""
        assert self._writer is not None
        for sentence in (*self._writer.take_notes(), *self._hidden.take_notes()):
            self.context.note(sentence)

    def stop(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.close()
        if self._database is not None:
            self._database.close()

    def _chunks(self, batches: Sequence[RecordColumns]) -> list[ColumnChunk] | None:
        """The records in columns of tables; None if they must be put one by one."""
        if sum(map(len, batches)) < FEWEST_IN_COLUMNS:
            return None
        from airflow_connect.connectors.jdbc.sink.columns.chunk import column_chunk

        chunks: list[ColumnChunk] = []
        for batch in batches:
            if chunks and int(chunks[-1].offsets[-1]) > int(batch.offsets[0]):
                return None
            plan = self._plan_of_columns(batch)
            chunk = None if plan is None else column_chunk(plan, batch)
            if chunk is None:
                return None
            chunks.append(chunk)
        return chunks

    def _plan_of_columns(self, batch: RecordColumns) -> RowPlan | None:
        """How records in columns become rows; None if they must be put one by one, which also reports why."""
        schema = batch.value.schema
        if schema is None or schema.type not in (Type.STRUCT, Type.STRING) or batch.value.values.null_count:
            return None
        key_schema = None
        if self.needs_keys:
            key_schema = None if batch.key is None else batch.key.schema
            if key_schema is None:
                return None
        try:
            return self._plans.get((batch.topic, key_schema, schema)) or self._plan(batch.topic, key_schema, schema)
        except DataError:
            return None

    def _see_keys(
        self, partition: TopicPartition, batches: Sequence[RecordColumns], chunks: Sequence[ColumnChunk]
    ) -> None:
        for batch, chunk in zip(batches, chunks, strict=True):
            keys_of_rows = chunk.columns[: chunk.plan.key_count]
            self._keys.sketches.see_columns(partition, chunk.offsets, chunk.plan.table, keys_of_rows)
            wanted = min(self._keys.wanted(partition), len(chunk))
            if not wanted:
                continue
            columns = [column.slice(0, wanted).to_pylist() for column in keys_of_rows]
            rows = [(chunk.plan.table, *key) for key in zip(*columns, strict=True)]
            indexes = batch.indexes[-len(chunk) :][:wanted]  # The first records may have been written before.
            self._keys.see_columns(partition, chunk.offsets[:wanted], rows, batch.read_records(indexes))

    # --- records to rows ------------------------------------------------------------------------------------------

    def _made(self, record: SinkRecord) -> Made | None:
        """The row of a record; None if it has none, and is left out.

        Raises:
            DataError: the record cannot become a row.
        """
        assert self._config is not None
        deletes = record.value is None and self._config.deletes
        if record.value is None and not deletes and self._config.ignores_null:
            self.context.leave_out(record)
            return None
        key_schema = record.key_schema
        if key_schema is None and isinstance(record.key, dict):
            key_schema = inferred_schema(record.key, "key")
        value_schema = None if deletes else self._value_schema(record)
        if self._config.mapping.pk_mode == keys.RECORD_KEY and (record.key is None or key_schema is None):
            raise self._refused(
                record, "a non-null key and non-null Struct or primitive key schema", "key", record.key, key_schema
            )
        plan = self._plans.get((record.topic, key_schema, value_schema))
        if plan is None:
            plan = self._plan(record.topic, key_schema, value_schema)
        return Made(plan, plan.row(record, key_only=deletes), record, deletes)

    def _is_written(self, record: SinkRecord, resumed: Resumed) -> bool:
        """Whether a record is in the database, so that older ones must not be written over it."""
        assert self._config is not None
        resumed.see(record.offset)
        if record.offset >= resumed.next_offset:
            if resumed.waits:
                self._add_waiting(resumed)
            return False
        if record.offset in resumed.errant:
            return False
        if resumed.waits and (record.value is not None or self._config.deletes):
            try:
                made = self._made(record)
            except DataError:
                return True  # It was written with another configuration.
            for older in resumed.superseded_by(made) if made is not None else ():
                self._report_superseded(older.record)
        return True

    def _waits(self, made: Made, resumed: Resumed) -> bool:
        """Whether an errant record that is tried again must not be written before all later ones are seen."""
        assert self._config is not None
        return made.record.offset < resumed.next_offset and self._config.finds_rows_by_key

    def _report_superseded(self, record: SinkRecord) -> None:
        self.context.errant_record_reporter.report(record, superseded(record))
        self._batch.add_errant(record)

    def _add_waiting(self, resumed: Resumed) -> None:
        for made in resumed.take_waiting():
            self._batch.ends.setdefault(place_of(made.record), made.record.offset + 1)
            self._add(made)

    def _add(self, made: Made) -> None:
        """Add the row of a record to the batch."""
        assert self._config is not None
        plan, row, record, deletes = made
        self._batch.add(plan, row, record, deletes=deletes)
        if plan.hidden and not deletes:
            self._hidden.see(plan.table, plan.hidden, record)
        if self._config.finds_rows_by_key:
            self._filled[plan.table].add(record.original_topic)
            place, key = place_of(record), row[: plan.key_count]
            self._keys.sketches.see(place, record.offset, plan.table, key)
            if record.consumed is not None and self._keys.wanted(place):
                self._keys.see(place, record.offset, (plan.table, *key), record.consumed.key)

    def _write(self) -> None:
        """Write the batch."""
        assert self._writer is not None
        batch, self._batch = self._batch, Batch()
        self._writer.write(batch)

    def _value_schema(self, record: SinkRecord) -> Schema:
        schema = record.value_schema
        if record.value is not None:
            if schema is not None and schema.type in (Type.STRUCT, Type.STRING):
                return schema
            if schema is None and isinstance(record.value, dict):
                return inferred_schema(record.value)
            if schema is None and isinstance(record.value, str):
                return Schema(Type.STRING)
        raise self._refused(record, "a non-null Struct value and non-null Struct schema", "value", record.value, schema)

    def _refused(self, record: SinkRecord, needed: str, side: str, value: Any, schema: Schema | None) -> DataError:
        assert self._config is not None
        what = "null" if value is None else _java_name(value)
        kind = "null" if schema is None else schema.type.name
        return SchemaError(
            f"Sink connector '{self._config.name}' is configured with '{Keys.deletes}="
            f"{str(self._config.deletes).lower()}' and '{Keys.pk_mode}={self._config.mapping.pk_mode}' and therefore"
            f" requires records with {needed}, but found record at (topic='{record.topic}',"
            f"partition={record.original_partition},offset={record.offset},timestamp={record.timestamp}) with a"
            f" {what} {side} and {kind} {side} schema.",
            code="jdbc.record",
            suggestion=f"Check the converters, {Keys.pk_mode} and {Keys.deletes}; records without value can be"
            f" dropped by {Keys.ignores_null}=ignore.",
        )

    def _plan(self, topic: str, key_schema: Schema | None, value_schema: Schema | None) -> RowPlan:
        assert self._config is not None and self._binding is not None
        table = self._table(topic)
        fields = fields_of(str(table), self._config.mapping, key_schema, value_schema)
        plan = RowPlan(table, fields, self._binding, hidden_by(self._config.mapping, fields, value_schema))
        self._plans[(topic, key_schema, value_schema)] = plan
        self._note_unused(table, unused_key_fields(self._config.mapping, key_schema))
        return plan

    def _note_unused(self, table: TableId, fields: tuple[str, ...]) -> None:
        assert self._config is not None
        if not fields or not self._config.finds_rows_by_key:
            return
        self.context.note(
            f"Keys of the records of {table} have fields that {Keys.pk_fields} does not have ({', '.join(fields)})."
            " Records whose keys differ only in them change and delete the same row. If that may happen, add them to"
            f" {Keys.pk_fields} and to the primary key of the table."
        )

    def _table(self, topic: str) -> TableId:
        """The table of a topic; as with Confluent's sink, dots separate schema and table."""
        assert self._config is not None and self._database is not None
        if topic not in self._tables:
            name = self._config.mapping.table_format.replace(keys.TOPIC_PLACEHOLDER, topic)
            try:
                self._tables[topic] = self._database.quoting.parse(name)
            except ConfigError as error:  # The name of a topic may come from the record, by a transformation.
                raise SchemaError(error.message, code=error.code, suggestion=error.suggestion) from None
        return self._tables[topic]


_JAVA_NAMES: dict[type, str] = {dict: "HashMap", list: "ArrayList", str: "String", bytes: "ByteBuffer"}


def _java_name(value: Any) -> str:
    return _JAVA_NAMES.get(type(value), type(value).__name__)
