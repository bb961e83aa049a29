"""Which stage of a sink's configuration keeps every record out of columns: for plans, before anything is copied.

Each task finds the same when it opens its stages (`runtime/executor/sink/loop.py`), and its report names it only if it
has cost time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_connect.config.resolved.loading import ResolvedConfig
    from airflow_connect.runtime.driver.sink.started_sink import StartedSink


def note_on_columns(resolved: ResolvedConfig, sink: StartedSink) -> str:
    """A sentence for a plan, if every record will be processed one by one; "" if some may go in columns.

    A chain with Java classes has a sentence of its own (`JavaChainConfig.notes`).

    Args:
        resolved: both configurations.
        sink: the connector.

    Raises:
        ConfigError: a converter or a transformation refuses its settings.
        ConnectError: the connector failed.
    """
    stage = "" if resolved.java is not None else _stage_without_columns(resolved, sink)
    if not stage:
        return ""
    return f"Records will be processed one by one instead of in columns, which is slower, because of {stage}."


def _stage_without_columns(resolved: ResolvedConfig, sink: StartedSink) -> str:
    from airflow_connect.runtime.executor.converting import RecordConverter  # loads converters: not for an empty run
    from airflow_connect.runtime.executor.sink.column_path import stage_without_columns

    of_sink = sink.stage_without_columns()
    if of_sink or sink.takes_whole_records():
        return of_sink
    converter = RecordConverter(resolved)
    try:
        if not converter.has_known_headers:
            return f"the header converter ({type(converter.headers).__name__})"
        stage = stage_without_columns(converter.value, converter.steps, with_headers=sink.needs_headers())
        if stage or converter.steps:
            return stage
        found = [sink.stage_without_columns_of(schema) for schema in getattr(converter.value, "known_schemas", ())]
        return next(filter(None, found), "")
    finally:
        converter.close()
