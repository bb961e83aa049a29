"""Plays cases in a process of its own, which ends when one of them hangs, even in C code.

    python -m tests.unit.limits.worker <file> <seed> <cases of each family>

The file holds the case that is being played. faulthandler's watchdog is a thread that needs no interpreter lock: it
prints where the process hangs and ends it.
"""

from __future__ import annotations

import faulthandler
import resource
import sys
import traceback
from pathlib import Path
from random import Random

from airflow_connect.errors import ConnectError
from tests.unit.limits.cases import FAMILIES

PATIENCE_S = 30
MEMORY_BYTES = 6 << 30
LONGEST_SHOWN = 4000


def main(current: Path, seed: int, count: int) -> int:
    """Exit code 0 when every case ended in a value or in an error of the project."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    failures = 0
    for name, family in FAMILIES.items():
        for turn in range(count):
            description, call = family(Random(f"{seed} {name} {turn}"))
            current.write_text(f"{name} {turn}: {description[:LONGEST_SHOWN]}", encoding="utf-8", errors="replace")
            faulthandler.dump_traceback_later(PATIENCE_S, exit=True)
            try:
                call()
            except ConnectError:
                pass  # an error of the project, with its sentence
            except BaseException:  # noqa: BLE001 (whatever it is, it would have ended a run)
                failures += 1
                shown = ascii(description[:LONGEST_SHOWN])
                print(f"{name} {turn}: {shown}\n{traceback.format_exc(limit=-6)[-3000:]}", flush=True)
            finally:
                faulthandler.cancel_dump_traceback_later()
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
