"""Runs of an Iceberg sink on the real broker, and what its table holds afterwards, in a catalog in SQLite."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError

from tests.support.copies.s3 import Sink

if TYPE_CHECKING:
    from pyiceberg.table import Table

ICEBERG_SINK = "org.apache.iceberg.connect.IcebergSinkConnector"


def sqlite_catalog(root: Path) -> dict[str, str]:
    """Properties of a catalog below a folder."""
    return {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": f"file://{root}/warehouse"}


@dataclass
class IcebergSink(Sink):
    """One Iceberg sink connector of a test; the folder of its catalog is `bucket`.

    What an S3 sink calls uploads are data files here that no snapshot has.
    """

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
            **{f"iceberg.catalog.{key}": value for key, value in sqlite_catalog(Path(self.bucket)).items()},
            **self.config,
        }
        overrides.pop("flush_size", None)
        config.update({key.replace("_", "."): value for key, value in overrides.items()})
        return {key: value for key, value in config.items() if value is not None}

    @property
    def catalog(self) -> Catalog:
        """The catalog, opened anew."""
        return load_catalog("iceberg", **sqlite_catalog(Path(self.bucket)))

    def table(self) -> Table | None:
        """The table, if it exists."""
        try:
            return self.catalog.load_table(self.table_name)
        except NoSuchTableError:
            return None

    def values(self) -> list[Any]:
        """Every row, without columns that are null."""
        table = self.table()
        rows = [] if table is None else table.scan().to_arrow().to_pylist()
        return [{name: value for name, value in row.items() if value is not None} for row in rows]

    def keys(self) -> list[str]:
        """Paths of the data files of the table."""
        table = self.table()
        if table is None:
            return []
        return sorted(task.file.file_path.removeprefix("file://") for task in table.scan().plan_files())

    def uploads(self) -> list[str]:
        """Paths of data files that no snapshot has."""
        written = {str(path) for path in Path(self.bucket, "warehouse").rglob("*.parquet")}
        return sorted(written - set(self.keys()))


def iceberg_sink(kafka: Any, root: Path, topic: str, **config: str) -> IcebergSink:
    """A connector that writes tables below `root`; `_` in a key stands for `.`."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return IcebergSink(kafka, None, str(root), f"sink-{uuid.uuid4().hex[:8]}", topic, settings)  # type: ignore[arg-type]
