"""Runs of an Iceberg sink on the real broker, and what its table holds afterwards, in a catalog in SQLite."""

from __future__ import annotations

import shutil
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError

from airflow_connect.connectors.iceberg.catalogs import close_catalog
from tests.support.copies.s3 import Sink

if TYPE_CHECKING:
    from pyiceberg.table import Table

FOREIGN = -1
"""The number in rows that another writer appends."""
ICEBERG_SINK = "org.apache.iceberg.connect.IcebergSinkConnector"


def sqlite_catalog(root: Path) -> dict[str, str]:
    """Properties of a catalog below a folder."""
    return {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": f"file://{root}/warehouse"}


def opened(properties: dict[str, str]) -> Catalog:
    """A catalog; that of a Hive metastore is ours, because the library's overwrites commits of others."""
    if properties["type"] != "hive":
        return load_catalog("iceberg", **properties)
    from airflow_connect.connectors.iceberg.hive_catalog import CompareAndSetCatalog

    return CompareAndSetCatalog("iceberg", **properties)


@dataclass
class IcebergSink(Sink):
    """One Iceberg sink connector of a test; the folder of its catalog is `bucket`.

    What an S3 sink calls uploads are data files here that no snapshot has.
    """

    catalog_properties: dict[str, str] = field(default_factory=dict)
    before_removal: Callable[[], None] = lambda: None

    @property
    def properties(self) -> dict[str, str]:
        """Properties of the catalog."""
        return self.catalog_properties or sqlite_catalog(Path(self.bucket))

    @property
    def table_name(self) -> str:
        """The table of the topic."""
        return f"lake.{self.topic.replace('-', '_').replace('.', '_')}"

    def connector(self, **overrides: Any) -> dict[str, Any]:
        """The configuration as people write it for Apache's sink; `None` removes a key, `_` stands for `.`."""
        config = {
            "name": self.name,
            "connector.class": ICEBERG_SINK,
            "tasks.max": "2",
            "topics": self.topic,
            "iceberg.tables": self.table_name,
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.tables.evolve-schema-enabled": "true",
            **{f"iceberg.catalog.{key}": value for key, value in self.properties.items()},
            **self.config,
        }
        overrides.pop("flush_size", None)
        config.update({key.replace("_", "."): value for key, value in overrides.items()})
        return {key: value for key, value in config.items() if value is not None}

    @property
    def catalog(self) -> Catalog:
        """The catalog, opened anew; to be closed."""
        return opened(self.properties)

    def table(self) -> Table | None:
        """The table, if it exists."""
        return self.table_at(self.properties)

    def table_at(self, properties: dict[str, str]) -> Table | None:
        """The table in another catalog."""
        catalog = opened(properties)
        try:
            return catalog.load_table(self.table_name)
        except NoSuchTableError:
            return None
        finally:
            close_catalog(catalog)

    def rows(self) -> list[dict[str, Any]]:
        """Every row, without columns that are null."""
        table = self.table()
        rows = [] if table is None else table.scan().to_arrow().to_pylist()
        return [{name: value for name, value in row.items() if value is not None} for row in rows]

    def values(self) -> list[Any]:
        """The rows that no other writer has appended."""
        return [row for row in self.rows() if row.get("n") != FOREIGN]

    def identities(self) -> dict[str, tuple[str, str]]:
        """Every visible data file: none vanishes, and none changes."""
        return {path: (str(Path(path).stat().st_size), str(Path(path).stat().st_mtime_ns)) for path in self.keys()}

    def settings_for_pieces(self, piece_bytes: int) -> dict[str, str]:
        """Files of the rounds with large records end at this size."""
        prefix = "iceberg_tables_write-props_write"
        row_group = f"{prefix}_parquet_row-group-size-bytes"
        return {f"{prefix}_target-file-size-bytes": str(piece_bytes // 5), row_group: str(piece_bytes // 5)}

    def most_pieces(self) -> int:
        """How many files a partition of the topic has at most."""
        return max(Counter(Path(path).name.rsplit("-", 5)[0] for path in self.keys()).values())

    def remove_all(self) -> None:
        """Delete all files of the table."""
        self.before_removal()
        table = self.table()
        assert table is not None
        shutil.rmtree(_path(table.location()))

    def keys(self) -> list[str]:
        """Paths of the data files of the table."""
        table = self.table()
        if table is None:
            return []
        return sorted(str(_path(task.file.file_path)) for task in table.scan().plan_files())

    def uploads(self) -> list[str]:
        """Paths of data files and manifests that no snapshot has, except lists that lost a race."""
        table = self.table()
        root = Path(self.bucket) if table is None else _path(table.location())
        files = [path for pattern in ("*.parquet", "ac-*/*.avro") for path in root.rglob(pattern)]
        ours = [path for path in files if path.parent.name.startswith("ac-")]
        written = {str(path) for path in ours if not path.name.startswith("snap-")}
        return sorted(written - {*self.keys(), *self._manifests()})

    def _manifests(self) -> set[str]:
        table = self.table()
        snapshots = table.metadata.snapshots if table is not None else []
        return {str(_path(one.manifest_path)) for s in snapshots for one in s.manifests(table.io)}


def iceberg_sink(kafka: Any, root: Path, topic: str, **config: str | None) -> IcebergSink:
    """A connector that writes tables below `root`; `_` in a key stands for `.`."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    root.mkdir(exist_ok=True)
    return IcebergSink(kafka, None, str(root), f"sink-{uuid.uuid4().hex[:8]}", topic, settings)  # type: ignore[arg-type]


def _path(location: str) -> Path:
    """Of a file or folder; Java writes `file:/`, Python `file:///`."""
    return Path("/" + location.removeprefix("file:").lstrip("/"))
