"""Download artifacts of a Maven repository with the Ivy that the pyspark wheel brings; no Maven is needed.

Environment: IVY_JAVA_OPTS has options for Ivy's Java (a proxy, `-Djavax.net.ssl.trustStore=FILE` for a company's
TLS proxy); AIRFLOW_CONNECT_MAVEN_ROOT names a repository to use instead of Maven Central.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from airflow_connect.errors import JarsError
from airflow_connect.jvm.java import java_executable

PROCESSES = 4
POLL_S = 0.2
LOG_TAIL_CHARS = 1500
FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
RETRIEVE_PATTERN = "[organisation]+[artifact]+[revision](+[classifier]).[ext]"

SETTINGS = """<ivysettings><settings defaultResolver="m"/><caches defaultCacheDir={cache}/><resolvers>
<ibiblio name="m" m2compatible="true" usepoms="false" useMavenMetadata="false" {root}/>
</resolvers></ivysettings>"""

MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="x" module="x"/><configurations><conf name="default"/></configurations>
<dependencies>{dependencies}</dependencies></ivy-module>"""

UNTRUSTED_SIGNS = ("PKIX path building failed", "unable to find valid certification path")
UNREACHABLE_SIGNS = ("UnknownHostException", "ConnectException", "Connection refused", "timed out", "Host ")


@dataclass(frozen=True)
class Artifact:
    """One file of a repository and the checksum that it must have."""

    org: str
    name: str
    version: str
    classifier: str
    extension: str
    sha256: str

    @classmethod
    def parse(cls, line: str) -> Artifact:
        """Read `org:name:version[:classifier[:extension]] sha256`."""
        coordinates, sha256 = line.split()
        org, name, version, classifier, extension = [*coordinates.split(":"), "", ""][:5]
        return cls(org, name, version, classifier, extension or "jar", sha256)

    @property
    def file_name(self) -> str:
        """Return the name of the fetched file, unique within a lock."""
        parts = [self.org, self.name, self.version, *([self.classifier] if self.classifier else [])]
        return "+".join(parts) + "." + self.extension

    def dependency(self) -> str:
        """Return the `<dependency>` element of an Ivy module."""
        org, name, version = _quoted(self.org), _quoted(self.name), _quoted(self.version)
        body = ""
        if self.classifier:
            kind, classifier = _quoted(self.extension), _quoted(self.classifier)
            body = f"<artifact name={name} type={kind} ext={kind} m:classifier={classifier}/>"
        attributes = 'transitive="false" conf="default->default"'
        return f"<dependency org={org} name={name} rev={version} {attributes}>{body}</dependency>"


def download(artifacts: Sequence[Artifact], into: Path, scratch: Path, on_poll: Callable[[], None]) -> None:
    """Download the artifacts, unchecked, into a folder.

    Several Ivy processes share the work (8 s for Kafka's 46 jars, 15 s with one), each with its own
    cache, because Ivy's cache does not support parallel writers.

    Args:
        artifacts: what to download.
        into: an empty folder for the files.
        scratch: a folder for Ivy's own files.
        on_poll: called a few times a second while it runs.

    Raises:
        JarsError: `jars.fetch` with the end of Ivy's log, `jars.ivy` without pyspark.
    """
    running: list[tuple[subprocess.Popen[bytes], Path]] = []
    try:
        for number in range(min(PROCESSES, len(artifacts))):
            process_and_log = _start(artifacts[number::PROCESSES], into, scratch / str(number))
            running.append(process_and_log)  # one by one: if a start fails, the earlier ones are ended
        while any(process.poll() is None for process, _ in running):
            on_poll()
            time.sleep(POLL_S)
    finally:
        for process, _ in running:
            if process.poll() is None:
                process.kill()
            process.wait()
    for process, log in running:
        if process.returncode:
            raise download_error(log.read_text(errors="replace"))


def _start(share: Sequence[Artifact], into: Path, work: Path) -> tuple[subprocess.Popen[bytes], Path]:
    work.mkdir()
    root = os.environ.get("AIRFLOW_CONNECT_MAVEN_ROOT")
    root_attribute = f"root={_quoted(root)}" if root else ""  # without it Ivy takes Maven Central
    settings, module, log = work / "settings.xml", work / "ivy.xml", work / "log"
    settings.write_text(SETTINGS.format(cache=_quoted(str(work / "cache")), root=root_attribute))
    module.write_text(MODULE.format(dependencies="".join(artifact.dependency() for artifact in share)))
    types = {"jar", "bundle", "maven-plugin", *(artifact.extension for artifact in share)}
    options = os.environ.get("IVY_JAVA_OPTS", "").split()
    argv = [java_executable(), *FLAGS, f"-Duser.home={work}", *options, "-jar", str(_ivy_jar())]
    argv += ["-settings", str(settings), "-ivy", str(module), "-confs", "default", "-types", *sorted(types)]
    argv += ["-retrieve", str(into / RETRIEVE_PATTERN)]
    with log.open("wb") as out:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT), log


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")  # found, not imported
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec and spec.origin else []
    if not found:
        raise JarsError(
            "Jars are fetched by the Ivy in the Python package pyspark, which is not installed.",
            code="jars.ivy",
            suggestion="Install airflow-connect[spark].",
        )
    return found[-1]


def download_error(log: str) -> JarsError:
    """An error that names the usual causes instead of Ivy's hundred lines."""
    if any(sign in log for sign in UNTRUSTED_SIGNS):
        cause = "Java does not trust the certificate of the repository (is there a TLS proxy in between?)."
        advice = (
            "Name a trust store that contains it, such as that of the system's Java: "
            "IVY_JAVA_OPTS=-Djavax.net.ssl.trustStore=FILE."
        )
    elif any(sign in log for sign in UNREACHABLE_SIGNS):
        cause = "the repository cannot be reached."
        advice = (
            "Check the network. A proxy goes into IVY_JAVA_OPTS=-Dhttps.proxyHost=HOST -Dhttps.proxyPort=N, "
            "the address of a mirror into AIRFLOW_CONNECT_MAVEN_ROOT."
        )
    else:
        cause = "Ivy failed."
        advice = "Its last lines above show the reason."
    tail = "\n".join(line for line in log.splitlines() if line.strip())[-LOG_TAIL_CHARS:]
    return JarsError(f"Jars could not be fetched: {cause}\n{tail}\n", code="jars.fetch", suggestion=advice)


def _quoted(text: str) -> str:
    """An attribute's value in XML, with its quotes."""
    # Imported here: it brings urllib.request and ssl, which a run without Java does not need.
    from xml.sax.saxutils import quoteattr

    return quoteattr(text)
