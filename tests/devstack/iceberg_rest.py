"""A real REST catalog: Iceberg's own servlet, over its JDBC catalog in SQLite, in Jetty."""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import pyspark

from airflow_connect.devstack.launching.java_server import JavaServer
from tests.devstack.jars import LOCKS

DEFAULT_HEAP_MB = 256
MAIN_CLASS = "org.eclipse.jetty.xml.XmlConfiguration"
CONFIGURATION = Path(__file__).with_suffix(".xml")
LOGGING = Path(__file__).parents[2] / "airflow_connect/runtime/engine/log4j2.properties"
SPARK_JARS = (
    "RoaringBitmap", "aircompressor", "avro-1", "commons-io", "commons-lang3", "hadoop-client-api",
    "hadoop-client-runtime", "jackson-annotations", "jackson-core-2", "jackson-databind", "jackson-datatype-jsr310", "jakarta.servlet-api",
    "jcl-over-slf4j", "log4j-api", "log4j-core", "log4j-slf4j2-impl", "slf4j-api",
)  # fmt: skip
"""Prefixes of the names of the jars that the servlet needs, out of Spark's."""


class IcebergRest(JavaServer):
    """A running catalog. Its tables survive `restart()`; their files are in local directories.

    Attributes:
        uri: for `iceberg.catalog.uri`.
        pid: process id of the server.
    """

    name = "Iceberg REST catalog 1.11.0"
    lock_name = "iceberg-rest-1.11.0"
    locks = LOCKS
    port_count = 1

    @classmethod
    def start(cls, data_dir: Path | None = None, heap_mb: int = DEFAULT_HEAP_MB) -> Self:
        """Start a catalog on a free port and return when it answers (3 s).

        Args:
            data_dir: where its database, its log and its warehouse go; a temporary folder unless given.
            heap_mb: largest Java heap in MiB.

        Raises:
            DevStackError: it could not be fetched (30 MB, once) or did not come up (with the end of its log).
        """
        catalog = cls(data_dir, heap_mb)
        catalog._start_on_free_ports()
        return catalog

    @property
    def uri(self) -> str:
        """Return `http://127.0.0.1:<port>`."""
        return f"http://127.0.0.1:{self.ports[0]}"

    def _class_path(self) -> list[Path]:
        found = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
        return [*super()._class_path(), *(path for path in found if path.name.startswith(SPARK_JARS))]

    def _flags(self) -> list[str]:
        settings = {
            "catalog.uri": f"jdbc:sqlite:{self.data_dir / 'catalog.db'}",
            "catalog.warehouse": (self.data_dir / "warehouse").as_uri(),
            "catalog.port": str(self.ports[0]),
            "log4j2.configurationFile": str(LOGGING),
        }
        return [*super()._flags(), *(f"-D{key}={value}" for key, value in settings.items())]

    def _program(self) -> Sequence[str]:
        return [MAIN_CLASS, str(CONFIGURATION)]

    def _is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=5)
        try:
            connection.request("GET", "/v1/config")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
