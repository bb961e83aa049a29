"""A Python for executors of another machine: without this package, and the archive that brings it there."""

from __future__ import annotations

import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

from tests.support.processes.drivers import PROJECT

OWN = "airflow_connect"
_TESTS = ("tests/support/faulty_converter.py", "tests/support/waiting.py")
"""What the tests' own converter consists of."""


def bare_python(folder: Path) -> Path:
    """An interpreter with every package of this one except airflow-connect; links, so it takes no time."""
    site = _environment(folder)
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        link = site / entry.name
        if OWN not in entry.name and not link.exists():
            link.symlink_to(entry)
    return folder / "bin" / "python"


def packed_environment(folder: Path) -> Path:
    """An archive for `spark.archives`, as `venv-pack` makes it: an environment with airflow-connect.

    What airflow-connect needs stays where it is: the whole environment would be an archive of 500 MB.
    """
    environment, dependencies = folder / "environment", folder / "dependencies"
    bare_python(dependencies)
    site = _environment(environment)
    (site / "dependencies.pth").write_text(f"{next(dependencies.glob('lib/python3*/site-packages'))}\n")
    # Spark unpacks `.tar.gz` with `tar`; from a `.tar` it would make files without permission to execute (SPARK-38632).
    archive = folder / "environment.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        for entry in environment.iterdir():
            tar.add(entry, entry.name)
        inside = site.relative_to(environment)
        tar.add(PROJECT / OWN, inside / OWN, filter=_without_data)
        for name in _TESTS:
            tar.add(PROJECT / name, inside / name)
    return archive


def zipped_package(folder: Path) -> Path:
    """An archive for `spark.submit.pyFiles`, as a wheel with another name: airflow-connect alone."""
    archive = folder / "airflow_connect.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for source in sorted((PROJECT / OWN).rglob("*")):
            name = str(source.relative_to(PROJECT))
            if source.is_file() and _is_used(f"/{name}"):
                zipped.write(source, name)
        for name in _TESTS:
            zipped.write(PROJECT / name, name)
    return archive


def _environment(folder: Path) -> Path:
    """An empty virtual environment; returns the folder of its packages."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    return next(folder.glob("lib/python3*/site-packages"))


def _without_data(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out what tasks do not use, and the stack of the tests, which knows the keys of their servers."""
    return entry if _is_used(entry.name) else None


def _is_used(name: str) -> bool:
    return not any(part in name for part in ("/ui/", "/helper/", "/cli/", "/devstack/"))
