"""Private text for a program that is being started: neither on its command line nor in a readable file."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class PrivateText:
    """A path for the program, and the descriptors that it must inherit to open it."""

    path: str
    descriptors: tuple[int, ...]


@contextmanager
def private_text(text: str) -> Iterator[PrivateText]:
    """Keep `text` readable for processes started within the block, and destroy it afterwards.

    On Linux it is a file in memory (memfd_create(2)), so nothing is left when this process is killed. Elsewhere it is
    a temporary file of mode 0600.
    """
    if sys.platform == "linux":
        descriptor = os.memfd_create("airflow-connect")
        try:
            with os.fdopen(os.dup(descriptor), "w") as out:
                out.write(text)
            yield PrivateText(f"/dev/fd/{descriptor}", (descriptor,))
        finally:
            os.ftruncate(descriptor, 0)  # The program still has it open.
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile("w", prefix="airflow-connect-") as file:
            file.write(text)
            file.flush()
            yield PrivateText(file.name, ())


def properties_text(settings: Mapping[str, str]) -> str:
    """A `.properties` file that Java reads back as `settings`, in ASCII. Source: java.util.Properties.store."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in settings.items())


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return "".join(chr(code) if chr(code).isalnum() and code < 128 else f"\\u{code:04x}" for code in codes)


def argument_file(options: Iterable[str]) -> str:
    """JVM options as an argument file, `java @file`. Source: the `java` command, "java Command-Line Argument Files"."""
    quoted = (option.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for option in options)
    return "".join(f'"{option}"\n' for option in quoted)
