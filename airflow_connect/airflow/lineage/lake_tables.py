"""Tables of a lake in OpenLineage: what a run has committed to them.

OpenLineage's naming has no rule for Iceberg. Its integration with Spark names a table by the folder where it is, and
puts the name in the catalog beside it (`symlinks`); so a job that reads the table has the same dataset. The folder is
known once a run has committed. Before, and for a run that has failed or found nothing, a table is no output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_connect.airflow.outcome import LAKE

if TYPE_CHECKING:
    from airflow.sdk import Asset
    from openlineage.client.event_v2 import OutputDataset

    from airflow_connect.documents.run_tables import TableCommit

_S3 = ("s3a", "s3n")


def without_tables(assets: Iterable[Asset]) -> list[Asset]:
    """The assets that are not tables of a lake."""
    return [asset for asset in assets if not asset.uri.startswith(LAKE)]


def table_datasets(commits: Sequence[TableCommit], facets: Mapping[str, Any]) -> list[OutputDataset]:
    """One dataset for each table: its newest snapshot as version, and what all snapshots of the run have added.

    Args:
        commits: of the run.
        facets: of each dataset, beside its own.
    """
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics

    tables: dict[str, list[TableCommit]] = {}
    for one in commits:
        tables.setdefault(one.uri, []).append(one)
    return [
        OutputDataset(
            *dataset_of(own[-1]),
            facets={**facets, **_facets(own[-1])},
            outputFacets={
                "outputStatistics": statistics.OutputStatisticsOutputDatasetFacet(
                    rowCount=sum(one.rows for one in own),
                    size=sum(one.size_bytes for one in own),
                    fileCount=sum(one.files for one in own),
                )
            },
        )
        for own in tables.values()
    ]


def dataset_of(commit: TableCommit) -> tuple[str, str]:
    """Namespace and name: of the folder, or of the catalog if the folder is not known."""
    parts = urlsplit(commit.location)
    if not commit.location:
        return f"{LAKE}{commit.catalog}", commit.table
    if parts.scheme in ("file", ""):
        return "file", parts.path.rstrip("/")
    scheme = "s3" if parts.scheme in _S3 else parts.scheme
    path = parts.path.rstrip("/")
    return f"{scheme}://{parts.netloc}", path if scheme == "hdfs" else path.lstrip("/")


def _facets(commit: TableCommit) -> dict[str, Any]:
    from openlineage.client.facet_v2 import dataset_version_dataset, storage_dataset, symlinks_dataset

    name = symlinks_dataset.Identifier(namespace=f"{LAKE}{commit.catalog}", name=commit.table, type="TABLE")
    return {
        "version": dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=commit.snapshot_id),
        "storage": storage_dataset.StorageDatasetFacet(storageLayer="iceberg", fileFormat="parquet"),
        "symlinks": symlinks_dataset.SymlinksDatasetFacet(identifiers=[name]),
    }
