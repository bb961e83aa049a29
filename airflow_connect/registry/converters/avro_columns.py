"""Messages of AvroConverter in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.api.columns import ValueColumns
from airflow_connect.converters.avro.columns import column_reader, read_column

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.converters.avro.parsing import AvroType
    from airflow_connect.registry.converters.id_runs import IdRun, Messages, RunReader


def run_reader(avro_type: AvroType, named: list[AvroType], schema: Schema) -> RunReader | None:
    """A reader of messages of an Avro schema, or None if parts of it have no columnar form.

    Args:
        avro_type: as JSON.
        named: schemas that it refers to.
        schema: its Connect schema.
    """
    reader = column_reader(avro_type, named, schema)
    if reader is None:
        return None

    def read(messages: Messages, run: IdRun) -> ValueColumns | None:
        values = read_column(reader, messages.scan(run))
        return None if values is None else ValueColumns(schema, values)

    return read
