"""A small JVM with Hadoop's own client, for drivers that must access HDFS like the cluster's Java programs.

It is not Spark's JVM: a run publishes, or finds that there is nothing to do, before and without a Spark session.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_connect.errors import AccessError, UnavailableError
from airflow_connect.jvm.java import find_java
from airflow_connect.runtime.engine.gateway import DEAF, spark_home

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
_SERVER = "py4j.GatewayServer"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_JARS = (
    "hadoop-client-api-*.jar",
    "hadoop-client-runtime-*.jar",
    "jcl-over-slf4j-*.jar",
    "log4j-1.2-api-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "py4j-*.jar",
    "slf4j-api-*.jar",
)
"""The jars of Hadoop's client, logging and py4j in pyspark; loading all of Spark would take ten times as long."""
_LEAN = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xss512k", "-Xmx192m")


@dataclass
class HadoopJvm:
    """A running JVM.

    Attributes:
        gateway: py4j's `JavaGateway`.
        process: the JVM; it ends when its standard input does, so it cannot outlive this process.
    """

    gateway: Any
    process: subprocess.Popen[bytes]

    @property
    def is_running(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def stop(self) -> None:
        """End the JVM; idempotent."""
        client = self.gateway._gateway_client
        client.is_connected = (
            False  # otherwise every Java object that is garbage-collected later would call the dead JVM
        )
        client.close()
        _end(self.process)


def start_hadoop_jvm(folders: Sequence[str], options: Sequence[str] = ()) -> HadoopJvm:
    """Start a JVM whose class path is `folders` and Hadoop's client.

    Args:
        folders: with `core-site.xml` and `hdfs-site.xml`.
        options: more JVM options.

    Raises:
        AccessError: no Java 17 or newer, no py4j, or no Hadoop in the installed Spark.
        UnavailableError: the JVM did not start.
    """
    try:
        from py4j.java_gateway import GatewayParameters, JavaGateway
    except ImportError as error:
        raise _without("the Python package py4j") from error
    java = find_java()
    home = spark_home() / "jars"
    jars = [found for pattern in _JARS for found in sorted(home.glob(pattern))]
    if len(jars) < len(_JARS):
        raise _without(f"the jars of Hadoop's client in {home}")
    flags = [*_LEAN, f"-Dlog4j2.configurationFile={_LOGGING}", *_kerberos(), *options]
    class_path = os.pathsep.join([*folders, *map(str, jars)])
    command = [str(java.executable), *flags, "-cp", class_path, _SERVER, "--die-on-broken-pipe", "--enable-auth", "0"]
    process = subprocess.Popen([*DEAF, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    port, token = _address(process)
    # Other output of Hadoop is not read, because standard output is reserved for the driver's events.
    parameters = GatewayParameters(address="127.0.0.1", port=port, auth_token=token, auto_convert=False)
    gateway = JavaGateway(gateway_parameters=parameters)
    gateway.set_gateway_client(_client_of_one_jvm(parameters))
    return HadoopJvm(gateway, process)


def _client_of_one_jvm(parameters: Any) -> Any:
    """A client that raises Java's exceptions before pyspark handles them.

    With its first session, pyspark replaces the function with which py4j converts replies to exceptions, for every
    gateway of the process. The new function asks Spark's JVM about the exception, although the object is in this JVM.
    Source: pyspark.errors.exceptions.captured.install_exception_handler.
    """
    from py4j.java_gateway import GatewayClient
    from py4j.protocol import get_return_value, is_error

    class Client(GatewayClient):  # type: ignore[misc]  # py4j has no types
        def send_command(self, command: str, retry: bool = True, binary: bool = False) -> Any:
            answer = super().send_command(command, retry, binary)
            if not binary and is_error(answer)[0]:
                get_return_value(answer, self)
            return answer

    return Client(gateway_parameters=parameters)


def _address(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Port and secret, which py4j's server writes in one line each."""
    assert process.stdout is not None
    late = threading.Timer(START_TIMEOUT_S, process.kill)
    late.start()
    try:
        port, token = process.stdout.readline().strip(), process.stdout.readline().strip()
    finally:
        late.cancel()
    if not port.isdigit() or not token:
        _end(process)
        raise UnavailableError(
            f"The JVM with Hadoop's client did not start within {START_TIMEOUT_S:.0f} s (exit code"
            f" {process.returncode}).",
            code="hdfs.jvm",
            suggestion="Its messages are in the log above; check Java and the memory of the machine, or set"
            " hdfs.publisher=native.",
        )
    return int(port), token.decode()


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _kerberos() -> list[str]:
    """A JVM option for KRB5_CONFIG, because Java ignores this variable, unlike other Kerberos programs."""
    config = os.environ.get("KRB5_CONFIG", "").partition(":")[0]
    return [f"-Djava.security.krb5.conf={config}"] if config else []


def _without(what: str) -> AccessError:
    return AccessError(
        f"hdfs.publisher=jvm needs {what}, which is missing on this machine.",
        code="hdfs.jvm_missing",
        config_path="hdfs.publisher",
        suggestion="Install airflow-connect[spark] with a pyspark that has Hadoop where the driver runs, or set"
        " hdfs.publisher=native.",
    )
