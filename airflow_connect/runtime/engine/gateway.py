"""The driver's JVM, started so that none of its settings is on a command line or in an environment.

pyspark would start `spark-submit` with every Spark setting, including secrets, as arguments that every user of the
machine can read. Here there are two ways:

- `start_gateway`: no launcher JVM, classes from an archive. Spark's own launcher is asked once and its answer is kept.
  The JVM gets its settings through its socket. For local and standalone masters.
- `start_submitted`: `spark-submit` with a private properties file. It does all that Spark does for YARN, Kubernetes,
  extra class paths and its own configuration files (spark_settings.py says when).
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shlex
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from airflow_connect.errors import TaskFailedError, missing_package
from airflow_connect.jvm.cache import cache_dir, replace_text
from airflow_connect.jvm.class_data import ClassDataArchive
from airflow_connect.jvm.java import find_java
from airflow_connect.runtime.engine.private_text import argument_file, private_text, properties_text

START_TIMEOUT_S = 60.0
SUBMIT_TIMEOUT_S = 600.0
"""spark-submit may have to download packages first."""
STOP_TIMEOUT_S = 60.0
WRITE_TIMEOUT_S = 300.0
"""Stopping takes a tenth of a second, but writing the archive, once per Java and pyspark, takes 15 s of CPU time."""
_ENDING_S = 0.5  # Its sockets are closed before it can be waited for.
_SUBMIT = "org.apache.spark.deploy.SparkSubmit"
_SERVER = "org.apache.spark.api.python.PythonGatewayServer"
# Ctrl-C is for the driver, which ends the JVM in order: an ignored signal stays ignored through exec.
DEAF = ("/bin/sh", "-c", 'trap \'\' INT; exec "$0" "$@"')
_MLLIB = "spark-mllib_"
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"

# A copy's JVM only schedules a handful of tasks: the quick compiler and the small collector halve its start.
# Without -Xms its first heap would be a 64th of the machine.
_LEAN = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss512k", "-XX:-UsePerfData", "-Xms32m")


@dataclass
class Gateway:
    """A running JVM that waits for pyspark.

    Attributes:
        process: the JVM; it ends when its standard input does, so it cannot outlive this process.
    """

    process: subprocess.Popen[bytes]
    _archive: ClassDataArchive | None = None

    def how_it_ended(self) -> str:
        """How the JVM ended, as the rest of a sentence about it; "": it has not."""
        try:
            code = self.process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            return ""
        return f"ended with exit code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"

    def stop(self) -> None:
        """End the JVM; once it also writes the class-data archive for later starts."""
        os.environ.pop(_PORT, None)
        os.environ.pop(_SECRET, None)
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(WRITE_TIMEOUT_S if self._archive and self._archive.is_writing else STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            if self._archive is not None:
                self._archive.discard()
        if self._archive is not None:
            self._archive.keep()


def start_gateway(memory: str, options: Sequence[str]) -> Gateway:
    """Start the JVM, and set the environment variables by which pyspark finds it.

    Args:
        memory: heap of the driver, as in `spark.driver.memory`.
        options: more JVM options (`spark.driver.extraJavaOptions`), which take precedence.

    Raises:
        AccessError: no Java 17 or newer.
        TaskFailedError: the JVM did not start.
    """
    java, flags = find_java(), _driver_flags(memory)
    archive = None if os.environ.get("SPARK_CONF_DIR") else class_data(memory, options)
    class_path = ":".join([*filter(None, [os.environ.get("SPARK_CONF_DIR")]), *map(str, spark_jars())])
    with private_text(argument_file(options)) as more:
        shared = archive.flags() if archive else ()
        command = [str(java.executable), *flags, f"@{more.path}", *shared, "-cp", class_path, _SERVER]
        process = _start(command, more.descriptors, START_TIMEOUT_S, "java")
    return Gateway(process, archive)


def start_submitted(settings: Mapping[str, str]) -> Gateway:
    """Let `spark-submit` prepare and start the JVM, and set the environment variables by which pyspark finds it.

    The JVM has the settings afterwards, as spark-submit has prepared them. PYSPARK_SUBMIT_ARGS is passed on, and
    Spark's own defaults file counts where `settings` say nothing.

    Args:
        settings: `spark.*`.

    Raises:
        TaskFailedError: the JVM did not start.
    """
    own = dict(settings)
    options = [own.pop(name, "") for name in ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")]
    with ExitStack() as stack:
        descriptors: list[int] = []
        if any(options):
            more = stack.enter_context(private_text(argument_file(shlex.split(" ".join(options)))))
            # spark-submit passes it on unchanged, and `java` reads the options from the file.
            own["spark.driver.extraJavaOptions"] = f"@{more.path}"
            descriptors += more.descriptors
        file = stack.enter_context(private_text(properties_text(own)))
        descriptors += file.descriptors
        arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        program = str(spark_home() / "bin" / "spark-submit")
        command = [program, "--properties-file", file.path, "--load-spark-defaults", *arguments]
        return Gateway(_start(command, descriptors, SUBMIT_TIMEOUT_S, "spark-submit"))


def _start(command: Sequence[str], descriptors: Sequence[int], timeout_s: float, what: str) -> subprocess.Popen[bytes]:
    """Start the program that becomes the JVM; it has read the files of `descriptors` when this returns."""
    with tempfile.TemporaryDirectory(prefix="airflow-connect-") as folder:
        where = Path(folder) / "gateway"
        environment = {
            **os.environ,
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(where),
            "SPARK_HOME": str(spark_home()),
            "SPARK_CONNECT_MODE": "0",
        }
        process = subprocess.Popen(
            [*DEAF, *command], stdin=subprocess.PIPE, env=environment, pass_fds=tuple(descriptors)
        )
        try:
            port, secret = _connection(process, where, timeout_s, what)
        except BaseException:
            assert process.stdin is not None
            process.stdin.close()
            raise
    os.environ[_PORT], os.environ[_SECRET] = str(port), secret
    return process


def class_data(memory: str, options: Sequence[str] = ()) -> ClassDataArchive:
    """The archive of the driver's classes, for a JVM with the class path `spark_jars()`."""
    return ClassDataArchive(find_java(), spark_jars(), [*_driver_flags(memory), *options])


def spark_jars() -> list[Path]:
    """The jars of Spark that its JVM here gets, always in the same order: an archive is valid for one class path only.

    Without MLlib, which no copy uses: Spark 4.2 registers MLlib's SQL functions in each session if it finds them, and
    that takes 0.4 s, almost half of the start of a session.
    """
    jars = sorted((spark_home() / "jars").glob("*.jar"))
    return [jar for jar in jars if not jar.name.startswith(_MLLIB)]


def _driver_flags(memory: str) -> list[str]:
    return [f"-Xmx{memory}", *_LEAN, *module_options(spark_home()), *_logging()]


def spark_home() -> Path:
    """SPARK_HOME, or the folder of the installed pyspark."""
    if os.environ.get("SPARK_HOME"):
        return Path(os.environ["SPARK_HOME"])
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise missing_package("pyspark", "spark", purpose="Copying with Spark")
    return Path(found.origin).parent


def _connection(process: subprocess.Popen[bytes], where: Path, timeout_s: float, what: str) -> tuple[int, str]:
    """Port and secret, as PythonGatewayServer writes them: an int, then a string with its length before it."""
    deadline = time.monotonic() + timeout_s
    while not where.exists():
        if process.poll() is not None:
            raise _not_started(f"{what} ended with exit code {process.returncode} before Spark's JVM was ready.")
        if time.monotonic() >= deadline:
            process.kill()
            process.wait()
            raise _not_started(f"Spark's JVM did not start within {timeout_s:.0f} s.")
        time.sleep(0.01)
    data = where.read_bytes()
    port, length = struct.unpack(">ii", data[:8])
    return port, data[8 : 8 + length].decode()


def _not_started(message: str) -> TaskFailedError:
    return TaskFailedError(
        message, suggestion="Its messages are in the log above; check Java, the settings and the memory of the machine."
    )


def module_options(home: Path) -> list[str]:
    """The `--add-opens` and `-D` options with which this Spark must run, as its own launcher says; asked once."""
    java = find_java()
    key = hashlib.sha256(f"{home} {java.home} {java.version}".encode()).hexdigest()[:16]
    kept = cache_dir() / "spark-options" / f"{key}.json"
    if kept.exists():
        options: list[str] = json.loads(kept.read_text())
        return options
    main = ["-cp", f"{home}/jars/*", "org.apache.spark.launcher.Main", _SUBMIT, "pyspark-shell"]
    environment = {**os.environ, "SPARK_HOME": str(home), "JAVA_HOME": str(java.home), "SPARK_SCALA_VERSION": "2.13"}
    command = [str(java.executable), "-Xmx128m", *_LEAN[:2], *main]
    answer = subprocess.run(command, capture_output=True, env=environment, check=False)
    words = answer.stdout.decode().replace("\n", "\0").split("\0")
    # Spark's launcher asks for an incubator module that some runtimes lack and that keeps class data from being shared.
    options = [w for w in words if w.startswith(("--add-opens=", "-D", "--enable-", "--sun-", "-XX:+Ignore"))]
    if answer.returncode or not options:
        raise TaskFailedError(
            f"Spark's launcher in {home} failed (exit code {answer.returncode}).",
            suggestion="Check the pyspark installation: pyspark and pyspark-client must have the same version.",
        )
    replace_text(kept, json.dumps(options))
    return options


def _logging() -> list[str]:
    return [f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"]
