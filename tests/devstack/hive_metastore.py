"""A real Hive metastore: the one in pyspark's jars, with its tables in an embedded Derby database."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from airflow_connect.devstack.launching.errors import DevStackError
from airflow_connect.devstack.launching.java_server import JavaServer
from airflow_connect.runtime import engine

DEFAULT_HEAP_MB = 384
MAIN_CLASS = "org.apache.hadoop.hive.metastore.HiveMetaStore"
LOGGING = Path(engine.__file__).with_name("log4j2.properties")

JARS = (
    "HikariCP",
    "antlr-runtime",
    "commons-cli",
    "commons-dbcp",
    "commons-lang-2",
    "commons-lang3",
    "commons-pool",
    "datanucleus-api-jdo",
    "datanucleus-core",
    "datanucleus-rdbms",
    "derby-",
    "derbyshared",
    "derbytools",
    "guava",
    "hadoop-client-api",
    "hadoop-client-runtime",
    "hive-common",
    "hive-exec",
    "hive-jdbc",
    "hive-metastore",
    "hive-serde",
    "hive-shims",
    "hive-storage-api",
    "jackson-annotations",
    "jackson-core-2",
    "jackson-databind",
    "javax.jdo",
    "javax.servlet-api",
    "jcl-over-slf4j",
    "jdo-api",
    "jta",
    "libfb303",
    "libthrift",
    "log4j-1.2-api",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j2-impl",
    "slf4j-api",
    "transaction-api",
)
"""Prefixes of the names of the jars that the metastore needs, out of Spark's 250."""


class HiveMetastore(JavaServer):
    """A running metastore, version 2.3.10, whose thrift protocol all later versions understand.

    Its tables survive `restart()`. It reaches HDFS and local directories, as the user who started it.

    Attributes:
        uri: for `hive.metastore.uris`.
        pid: process id of the server.
    """

    name = "Hive metastore 2.3.10"
    lock_name = "hive-metastore-2.3.10"
    port_count = 1

    @classmethod
    def start(cls, data_dir: Path | None = None, heap_mb: int = DEFAULT_HEAP_MB) -> Self:
        """Start a metastore on a free port and return when it listens (6 s, of which 3 create the database).

        Args:
            data_dir: where database and log go; a temporary folder unless given.
            heap_mb: largest Java heap in MiB.

        Raises:
            DevStackError: pyspark is not installed, or the server did not come up (with the end of its log).
        """
        metastore = cls(data_dir, heap_mb)
        metastore._start_on_free_ports()
        return metastore

    @property
    def uri(self) -> str:
        """Return `thrift://127.0.0.1:<port>`."""
        return f"thrift://127.0.0.1:{self.ports[0]}"

    @property
    def warehouse(self) -> Path:
        """Return the folder of managed tables."""
        return self.data_dir / "warehouse"

    def _class_path(self) -> list[Path]:
        spec = importlib.util.find_spec("pyspark")  # found, not imported
        if spec is None or spec.origin is None:
            raise DevStackError(
                "The Hive metastore runs on the jars in the Python package pyspark, which is not installed.",
                code="devstack.pyspark",
                suggestion="Install airflow-connect[demo].",
            )
        found = sorted(Path(spec.origin).parent.glob("jars/*.jar"))
        return [path for path in found if path.name.startswith(JARS)]

    def _flags(self) -> list[str]:
        return [*super()._flags(), f"-Dlog4j2.configurationFile={LOGGING}"]

    def _program(self) -> Sequence[str]:
        scratch = self.data_dir / "tmp"
        scratch.mkdir(exist_ok=True)
        # No hive-site.xml: with a folder on the class path, Java cannot use an archive of class data.
        settings = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self.data_dir / 'database'};create=true",
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
            "datanucleus.schema.autoCreateAll": "true",
            "datanucleus.connectionPoolingType": "HikariCP",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": self.warehouse.as_uri(),
            "hive.exec.scratchdir": scratch.as_uri(),
            # The asynchronous logger needs a jar that Spark does not include.
            "hive.async.log.enabled": "false",
            # Gathering statistics would read the table's files.
            "hive.stats.autogather": "false",
            # Copying permissions would start a Hadoop shell for each new directory.
            "hive.warehouse.subdir.inherit.perms": "false",
            "derby.stream.error.file": os.devnull,
        }
        given = [part for key, value in settings.items() for part in ("--hiveconf", f"{key}={value}")]
        return [MAIN_CLASS, "-p", str(self.ports[0]), *given]
