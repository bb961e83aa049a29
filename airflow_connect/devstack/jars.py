"""Fetch the jars of a lock file from Maven Central, with the Ivy that the pyspark wheel brings, into the cache.

A lock holds one line for each artifact, `org:name:version[:classifier[:extension]] sha256`, and is fetched without reading any POM:
that takes 8 s for Kafka's 46 jars where resolving takes 44 s.

Invariants: a folder of the cache is complete and checked, or it does not exist; nothing comes into it but by one rename.
Environment: IVY_JAVA_OPTS is given to Ivy's Java (a proxy, `-Djavax.net.ssl.trustStore=FILE` for a company's TLS proxy);
AIRFLOW_CONNECT_MAVEN_ROOT names another repository in place of Maven Central.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from airflow_connect.devstack.cache import cache_dir, locked
from airflow_connect.devstack.errors import DevStackError
from airflow_connect.devstack.java import java_executable

LOCKS = Path(__file__).with_name("locks")
IVY_PROCESSES = 4
PROGRESS_S = 0.2
IVY_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
RETRIEVE_PATTERN = "[organisation]+[artifact]+[revision](+[classifier]).[ext]"


@dataclass(frozen=True)
class Artifact:
    """One line of a lock."""

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
        org, name, version, classifier, extension = (coordinates.split(":") + ["", ""])[:5]
        return cls(org, name, version, classifier, extension or "jar", sha256)

    @property
    def file_name(self) -> str:
        """Return the name of the file in the folder, unique within a lock."""
        parts = [self.org, self.name, self.version, *([self.classifier] if self.classifier else [])]
        return "+".join(parts) + "." + self.extension

    def dependency(self) -> str:
        """Return the `<dependency>` element of an Ivy file."""
        head = f"<dependency org={quoteattr(self.org)} name={quoteattr(self.name)} rev={quoteattr(self.version)}"
        body = ""
        if self.classifier:
            extension = quoteattr(self.extension)
            body = f"<artifact name={quoteattr(self.name)} type={extension} ext={extension} m:classifier={quoteattr(self.classifier)}/>"
        return f'{head} transitive="false" conf="default->default">{body}</dependency>'


def read_lock(lock: Path) -> list[Artifact]:
    """Return the artifacts of a lock file."""
    return [Artifact.parse(line) for line in lock.read_text().splitlines() if line.strip()]


def fetch_jars(lock_name: str, locks: Path = LOCKS) -> list[Path]:
    """Return the files of the lock `<lock_name>.lock`, sorted by name, fetching them on first use.

    Several processes may ask at once: one fetches, the others wait for it.

    Raises:
        DevStackError: `devstack.fetch` (no network, no such artifact) or `devstack.checksum`.
    """
    lock = locks / f"{lock_name}.lock"
    artifacts = read_lock(lock)
    key = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    folder = cache_dir() / "jars" / f"{lock_name}-{key}"
    if not folder.is_dir():
        with locked(folder.name):
            if not folder.is_dir():
                _fetch_into(folder, lock_name, artifacts)
    return [folder / name for name in sorted(artifact.file_name for artifact in artifacts)]


def _fetch_into(folder: Path, lock_name: str, artifacts: Sequence[Artifact]) -> None:
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{lock_name}-") as scratch_name:
        scratch = Path(scratch_name)
        drafts = scratch / "jars"
        drafts.mkdir()
        _run_ivy(scratch, drafts, lock_name, artifacts)
        _check(drafts, lock_name, artifacts)
        os.rename(drafts, folder)


def _run_ivy(scratch: Path, drafts: Path, lock_name: str, artifacts: Sequence[Artifact]) -> None:
    """Run some Ivy processes side by side, each with a cache of its own: Ivy's cache is not made for parallel writers."""
    shares = [artifacts[first::IVY_PROCESSES] for first in range(min(IVY_PROCESSES, len(artifacts)))]
    running: list[tuple[subprocess.Popen[bytes], Path]] = []
    progress = _Progress(lock_name, drafts, len(artifacts))
    try:
        for number, share in enumerate(shares):
            running.append(_start_ivy(scratch / str(number), drafts, share))
        while any(process.poll() is None for process, _ in running):
            progress.show()
            time.sleep(PROGRESS_S)
    finally:
        for process, _ in running:
            if process.poll() is None:
                process.kill()
            process.wait()
        progress.end()
    for process, log in running:
        if process.returncode:
            raise _fetch_error(lock_name, log.read_text(errors="replace"))


def _start_ivy(work: Path, drafts: Path, share: Sequence[Artifact]) -> tuple[subprocess.Popen[bytes], Path]:
    work.mkdir()
    root = os.environ.get("AIRFLOW_CONNECT_MAVEN_ROOT")
    root_attribute = f"root={quoteattr(root)}" if root else ""  # without it Ivy takes Maven Central
    (work / "settings.xml").write_text(
        f'<ivysettings><settings defaultResolver="m"/><caches defaultCacheDir={quoteattr(str(work / "cache"))}/><resolvers>'
        f'<ibiblio name="m" m2compatible="true" usepoms="false" useMavenMetadata="false" {root_attribute}/>'
        "</resolvers></ivysettings>"
    )
    (work / "ivy.xml").write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven"><info organisation="x" module="x"/><configurations>'
        '<conf name="default"/></configurations><dependencies>'
        + "".join(artifact.dependency() for artifact in share)
        + "</dependencies></ivy-module>"
    )
    log = work / "log"
    options = os.environ.get("IVY_JAVA_OPTS", "").split()
    argv = [java_executable(), *IVY_FLAGS, f"-Duser.home={work}", *options, "-jar", str(_ivy_jar())]
    argv += ["-settings", str(work / "settings.xml"), "-ivy", str(work / "ivy.xml"), "-confs", "default"]
    argv += ["-types", "jar", "bundle", "maven-plugin", *{artifact.extension for artifact in share if artifact.classifier}]
    argv += ["-retrieve", str(drafts / RETRIEVE_PATTERN)]
    with log.open("wb") as out:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT), log


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec and spec.origin else []
    if not found:
        raise DevStackError(
            "The jars of the development stack are fetched by the Ivy in the Python package pyspark, which is not installed.",
            code="devstack.ivy",
            suggestion="Install airflow-connect[demo].",
        )
    return found[-1]


def _check(drafts: Path, lock_name: str, artifacts: Sequence[Artifact]) -> None:
    for artifact in artifacts:
        path = drafts / artifact.file_name
        if not path.is_file():
            raise DevStackError(
                f"{lock_name}: the repository has no {artifact.file_name}.",
                code="devstack.fetch",
                suggestion="Compare the lock with the repository.",
            )
        with path.open("rb") as data:
            found = hashlib.file_digest(data, "sha256").hexdigest()
        if found != artifact.sha256:
            raise DevStackError(
                f"{lock_name}: {artifact.file_name} has sha256 {found}, the lock says {artifact.sha256}; nothing was kept.",
                code="devstack.checksum",
                suggestion="Something between here and the repository changed the file: find out what before you try again.",
            )


def _fetch_error(lock_name: str, log: str) -> DevStackError:
    """Name the cause that people meet, in place of Ivy's hundred lines."""
    if "PKIX path building failed" in log or "unable to find valid certification path" in log:
        cause = "Java does not trust the certificate of the repository (a company's TLS proxy?)."
        advice = "Give Java a trust store that does: IVY_JAVA_OPTS=-Djavax.net.ssl.trustStore=<file, for instance that of the system's Java>."
    elif any(sign in log for sign in ("not found. url=", "UnknownHostException", "ConnectException", "timed out", "Connection refused")):
        cause = "the repository cannot be reached."
        advice = "Check the network; behind a proxy set IVY_JAVA_OPTS=-Dhttps.proxyHost=... -Dhttps.proxyPort=...; a mirror goes into AIRFLOW_CONNECT_MAVEN_ROOT."
    else:
        cause = "Ivy failed."
        advice = "Its last lines name the reason."
    tail = "\n".join(line for line in log.splitlines() if line.strip())[-1500:]
    message = f"The jars of {lock_name} could not be fetched: {cause}\n{tail}\n"
    return DevStackError(message, code="devstack.fetch", suggestion=advice)


class _Progress:
    """One line on a terminal that counts the files; a single line of text elsewhere."""

    def __init__(self, lock_name: str, drafts: Path, total: int) -> None:
        self._what = f"Fetching {lock_name} from Maven Central (once; kept in {cache_dir()})"
        self._drafts = drafts
        self._total = total
        self._is_terminal = sys.stderr.isatty()
        if not self._is_terminal:
            print(f"{self._what}: {total} files", file=sys.stderr, flush=True)

    def show(self) -> None:
        if self._is_terminal:
            done = sum(1 for _ in self._drafts.iterdir())
            width = shutil.get_terminal_size().columns
            line = f"{self._what}: {done}/{self._total} files"
            print(f"\r{line[: width - 1]}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._is_terminal:
            self.show()
            print(file=sys.stderr, flush=True)
