"""Other programs that read Iceberg tables, in environments of their own: their versions do not go with ours.

DuckDB's extension exists for other versions than the one that other tests use, and Iceberg's runtime does not support
the newest Spark.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from airflow_connect.jvm.cache import cache_dir, locked
from airflow_connect.jvm.java import find_java
from tests.devstack.jars import fetch_jars

PINS = Path(__file__).parents[1] / "data/lake_readers"
_DUCKDB = """
import glob, json, os, sys
import duckdb, duckdb_extension_avro, duckdb_extension_iceberg
ask = json.load(sys.stdin)
con = duckdb.connect(config={"allow_unsigned_extensions": "false", "home_directory": ask["home"]})
con.execute("SET TimeZone='UTC'")
for module in (duckdb_extension_avro, duckdb_extension_iceberg):
    (path,) = glob.glob(os.path.dirname(module.__file__) + "/**/*.duckdb_extension", recursive=True)
    con.execute(f"INSTALL '{path}'")
    con.execute(f"LOAD '{os.path.basename(path).split('.')[0]}'")
con.execute(f"create view lake as select * from iceberg_scan('{ask['metadata']}')")
print(json.dumps([con.execute(query).fetchall() for query in ask["queries"]], default=str))
"""
_SPARK = """
import json, sys
from pyspark.sql import SparkSession
ask = json.load(sys.stdin)
settings = {
    "spark.jars": ask["jars"], "spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC",
    "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.r": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.r.type": "rest", "spark.sql.catalog.r.uri": ask["uri"],
}
builder = SparkSession.builder.master("local[1]")
for key, value in settings.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.table("r." + ask["table"]).createOrReplaceTempView("lake")
found = [[list(row) for row in spark.sql(query).collect()] for query in ask["queries"]]
spark.stop()
print(json.dumps(found, default=str))
"""


def read_with_duckdb(metadata: str, queries: list[str]) -> list[list[list[Any]]]:
    """Rows of each query of the table `lake`, whose metadata file is `metadata`."""
    with tempfile.TemporaryDirectory() as home:
        return _asked("duckdb", _DUCKDB, {"metadata": metadata, "queries": queries, "home": home})


def read_with_spark(uri: str, table: str, queries: list[str]) -> list[list[list[Any]]]:
    """The same with Spark, through a REST catalog; queries may also call procedures of the catalog `r`."""
    jars = ",".join(map(str, fetch_jars("iceberg-spark-1.12.0")))
    return _asked("spark", _SPARK, {"uri": uri, "table": table, "queries": queries, "jars": jars})


def _asked(reader: str, program: str, question: dict[str, Any]) -> list[list[list[Any]]]:
    java = str(find_java(17).executable.parents[1])
    environment = {**os.environ, "PYTHONPATH": str(_site(reader)), "JAVA_HOME": java, "PYSPARK_PYTHON": sys.executable}
    environment.pop("SPARK_HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(question), capture_output=True, text=True, env=environment,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[list[list[Any]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def _site(reader: str) -> Path:
    """A folder with the packages of a reader, installed on first use."""
    pins = PINS / f"{reader}.txt"
    folder = cache_dir() / "readers" / f"{reader}-{hashlib.sha256(pins.read_bytes()).hexdigest()[:12]}"
    with locked(folder.name):
        if not folder.is_dir():
            folder.parent.mkdir(exist_ok=True)
            draft = Path(tempfile.mkdtemp(dir=folder.parent))
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
            try:
                subprocess.run([*command, "--target", str(draft), "-r", str(pins)], check=True)
                draft.rename(folder)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
    return folder
