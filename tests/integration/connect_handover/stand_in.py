"""Compiles the S3 sink that stands in for Confluent's, and starts a real worker that has it.

Spark's Janino compiles it, because a Java runtime without a compiler is enough for everything else.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyspark

from airflow_connect.jvm.java import java_executable
from tests.devstack.connect_worker import ConnectWorker
from tests.integration.jvm.hosting import chain_jar

SOURCES = Path(__file__).with_name("s3_stand_in")
CLASS = "io.confluent.connect.s3.S3SinkConnector"
_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"


class WorkerWithS3(ConnectWorker):
    """A real worker, with the file connectors, the S3 sink that stands in for Confluent's, and our parts of chains."""

    name = "Kafka Connect 4.3.1 with an S3 sink of the tests"

    def _class_path(self) -> list[Path]:
        jars = super()._class_path()
        classes = self.data_dir / "classes"
        compile_sink(jars, classes)
        return [*jars, classes, chain_jar()]


def compile_sink(jars: list[Path], classes: Path) -> None:
    """Write the classes, and the list in which a worker looks for plugins."""
    services = classes / "META-INF" / "services"
    services.mkdir(parents=True)
    (services / "org.apache.kafka.connect.sink.SinkConnector").write_text(f"{CLASS}\n")
    spark = Path(pyspark.__file__).parent / "jars"
    compiler = [*spark.glob("janino-*.jar"), *spark.glob("commons-compiler-*.jar")]
    class_path = ":".join(map(str, jars))
    sources = [str(source) for source in sorted(SOURCES.rglob("*.java"))]
    done = subprocess.run(
        [java_executable(), "-cp", ":".join(map(str, compiler)), _COMPILER,
         "-d", str(classes), "-classpath", class_path, "-sourcepath", str(SOURCES), *sources],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and list(classes.rglob("S3SinkTask.class")), done.stdout + done.stderr
