"""OpenLineage: what a run reads and writes, how many records, and which fields become which.

The official provider calls the three methods of `LineageMixin`, and adds the message of a failed task by itself.
They import OpenLineage when they are called. Only its provider calls them, so it need not be installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_connect.airflow.lineage.columns import message_fields, written_fields
from airflow_connect.airflow.lineage.database_assets import SCHEMES as DATABASES
from airflow_connect.airflow.lineage.database_assets import Names, dataset_name, table_assets
from airflow_connect.airflow.lineage.default_assets import (
    default_assets,
    is_lake_sink,
    topic_assets,
    without_known,
)
from airflow_connect.airflow.lineage.lake_tables import table_datasets, without_tables

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Asset

    from airflow_connect.documents.run import RunReport


_COLUMN_KEYS = ("evolve-schema-enabled", "schema-case-insensitive")


@dataclass(frozen=True, slots=True)
class Lineage:
    """What is known about a run.

    Attributes:
        connector, worker: configurations as written. References to config providers stay unresolved, so nothing that
            is emitted holds a secret.
        report: what the run did; None: not known.
    """

    connector: Mapping[str, Any] = field(default_factory=dict, repr=False)
    worker: Mapping[str, Any] = field(default_factory=dict, repr=False)
    report: RunReport | None = None


class LineageMixin:
    """The methods by which OpenLineage's provider asks an operator."""

    def lineage(self) -> Lineage:
        """What the task knows now."""
        raise NotImplementedError

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """Datasets that the configuration names."""
        return _operator_lineage(self.lineage())

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """Datasets with what the run did."""
        return _operator_lineage(self.lineage())

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """Datasets; the provider adds the message."""
        return _operator_lineage(self.lineage())


def _operator_lineage(known: Lineage) -> OperatorLineage[Any, Any]:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset

    inlets, outlets = _assets(known)
    read = message_fields(known.connector, known.worker) if outlets and _is_topic(inlets) else None
    written = None if read is None or _changes_columns(known.connector) else written_fields(read, known.connector)
    inputs = [
        InputDataset(*name, facets=_schema(read), inputFacets=_read_counts(known.report, inlets))
        for name in map(_dataset_name, inlets)
    ]
    outputs = [
        OutputDataset(
            *_dataset_name(asset),
            facets={**_schema(written), **_columns(written, inlets)},
            outputFacets=_written_counts(known.report, asset, outlets),
        )
        for asset in without_tables(outlets)
    ]
    if known.report is not None:
        outputs += table_datasets(known.report.tables, {**_schema(written), **_columns(written, inlets)})
    return OperatorLineage(inputs=inputs, outputs=outputs, run_facets=_run_facets(known.report), job_facets={})


def _assets(known: Lineage) -> tuple[list[Asset], list[Asset]]:
    """What the configuration names; and after a run, the tables and topics that a source says it has copied."""
    inlets, outlets = default_assets(known.connector, known.worker)
    done = None if known.report is None else known.report.source
    if done is None:
        return inlets, outlets
    # A large table has an offset for each of its ranges.
    tables = list(dict.fromkeys(str(move.partition["table"]) for move in done.offsets if move.partition.get("table")))
    read = table_assets(Names(str(known.connector.get("connection.url") or ""), tables))
    written = topic_assets(done.topics, known.worker)
    return [*inlets, *without_known(read, inlets)], [*outlets, *without_known(written, outlets)]


def _changes_columns(connector: Mapping[str, Any]) -> bool:
    """Whether a sink writes other columns than the fields of the value."""
    if is_lake_sink(connector):
        # Without evolution, fields that the table does not have are dropped.
        evolves, ignores_case = (str(connector.get(f"iceberg.tables.{key}", "")).lower() for key in _COLUMN_KEYS)
        return evolves != "true" or ignores_case == "true"
    if "connection.url" not in connector:
        return False
    return bool(connector.get("fields.whitelist")) or connector.get("pk.mode", "none") not in ("none", "record_value")


def _is_topic(assets: Iterable[Asset]) -> bool:
    return all(asset.uri.startswith("kafka://") for asset in assets)


def _dataset_name(asset: Asset) -> tuple[str, str]:
    """Namespace and name, by OpenLineage's naming: a bucket, a name node or a broker, and the path in it."""
    parts = urlsplit(asset.uri)
    if parts.scheme in DATABASES:
        return dataset_name(asset.uri)
    if parts.scheme == "file":
        return "file", parts.path
    return f"{parts.scheme}://{parts.netloc}", parts.path if parts.scheme == "hdfs" else parts.path.lstrip("/")


def _schema(fields: Any) -> dict[str, Any]:
    from openlineage.client.facet_v2 import schema_dataset

    if not fields:
        return {}
    found = [schema_dataset.SchemaDatasetFacetFields(name=known.name, type=known.kind) for known in fields]
    return {"schema": schema_dataset.SchemaDatasetFacet(fields=found)}


def _columns(written: Any, inlets: Iterable[Asset]) -> dict[str, Any]:
    """Which fields of which topics become a field; fields that no field of a message becomes are left out."""
    from openlineage.client.facet_v2 import column_lineage_dataset as column_lineage

    topics = [_dataset_name(asset) for asset in inlets]
    if not written or not topics:
        return {}
    fields = {}
    for column in written:
        if not column.source:
            continue
        how = column_lineage.Transformation(
            type="DIRECT",
            subtype="TRANSFORMATION" if column.is_changed or column.is_masked else "IDENTITY",
            masking=column.is_masked,
        )
        sources = [column_lineage.InputField(*topic, field=column.source, transformations=[how]) for topic in topics]
        fields[column.name] = column_lineage.Fields(inputFields=sources)
    return {"columnLineage": column_lineage.ColumnLineageDatasetFacet(fields=fields)}


def _read_counts(report: RunReport | None, inlets: list[Asset]) -> dict[str, Any]:
    """Records of a sink that has one topic; a report does not count them by topic."""
    from openlineage.client.facet_v2 import input_statistics_input_dataset as statistics

    if report is None or report.source is not None or len(inlets) != 1:
        return {}
    count = report.records + report.filtered + report.dead_lettered
    return {"inputStatistics": statistics.InputStatisticsInputDatasetFacet(rowCount=count)}


def _written_counts(report: RunReport | None, asset: Asset, outlets: list[Asset]) -> dict[str, Any]:
    from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics

    if report is None:
        return {}
    if report.source is not None:
        count = report.source.topics.get(_dataset_name(asset)[1], 0)
        return {"outputStatistics": statistics.OutputStatisticsOutputDatasetFacet(rowCount=count)}
    if len(outlets) != 1:
        return {}
    more = report.recovered  # The killed attempt that copied them sent no event.
    whole = statistics.OutputStatisticsOutputDatasetFacet(
        rowCount=report.records + more.get("records", 0),
        size=report.size_bytes + more.get("size_bytes", 0),
        fileCount=report.files + more.get("files", 0),
    )
    return {"outputStatistics": whole}


def _run_facets(report: RunReport | None) -> dict[str, Any]:
    """The summary that other tasks see, as a facet of our own: counts, and where the next run begins."""
    if report is None:
        return {}
    import attr
    from openlineage.client.facet_v2 import RunFacet

    from airflow_connect.airflow.outcome import summary_of

    @attr.define
    class ConnectRunFacet(RunFacet):
        summary: dict[str, Any]

    return {"airflowConnect_run": ConnectRunFacet(summary=summary_of(report))}
