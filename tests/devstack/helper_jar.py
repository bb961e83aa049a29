"""`make helper`: compiles the plugin host's program into the jar that the package ships."""

from __future__ import annotations

import tempfile
from pathlib import Path

from airflow_connect.jvm.host_jars import HELPER, LOCK
from airflow_connect.jvm.jars.locked_jars import fetch_jars
from tests.devstack.java_compiler import compile_java, pack

SOURCES = HELPER.parent / "src"


def build(jar: Path) -> None:
    """Compile the sources against the runtime of the lock, and pack them."""
    with tempfile.TemporaryDirectory() as folder:
        classes = Path(folder) / "classes"
        compile_java(list(SOURCES.rglob("*.java")), fetch_jars(LOCK), classes)
        pack(classes, jar)


if __name__ == "__main__":
    build(HELPER)
    print(f"{HELPER} has {HELPER.stat().st_size:,} bytes.")
