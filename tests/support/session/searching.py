"""Seeds of property tests and of kill rounds, and how many of them there are.

`make test` always searches the same way: only a change of the code makes it fail, not the calendar. `make soak`
searches elsewhere each day; AIRFLOW_CONNECT_DAY=2026-12-24 does so for any run. The seed stands in pytest's header and
beside each failure. `--hypothesis-seed` sets another one; AIRFLOW_CONNECT_EXAMPLES multiplies the examples that a
property test names, AIRFLOW_CONNECT_SOAK=1 (`make soak`) does so by 20. Without either, a session tries 0.15 of
them.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import shlex
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants, constants_from_module

EXAMPLES = "AIRFLOW_CONNECT_EXAMPLES"
SOAK = "AIRFLOW_CONNECT_SOAK"
ROUNDS = "AIRFLOW_CONNECT_ROUNDS"
IS_SOAK = bool(os.environ.get(SOAK))
KILL_ROUNDS = int(os.environ.get(ROUNDS) or ("1000" if IS_SOAK else "2"))
"""How often each kind of run is killed at random. What every session must cover, such as each named step, is apart."""
_FACTOR = float(os.environ.get(EXAMPLES) or ("20" if IS_SOAK else "0.15"))
_FEWEST = 10
_DAY = "AIRFLOW_CONNECT_DAY"
_USUAL_DAY = "2026-11-24"
_PACKAGE = Path(__file__).parents[3] / "airflow_connect"


def examples(count: int) -> int:
    """`max_examples` of a test: 0.15 of `count` in `make test`, 20 times in `make soak`."""
    return max(min(count, _FEWEST), int(count * _FACTOR))


def seed_day() -> dt.date:
    """The day that seeds come from: fixed, or that of `make soak` in UTC, which stays the same after midnight."""
    day = dt.datetime.now(dt.UTC).date().isoformat() if IS_SOAK else _USUAL_DAY
    return dt.date.fromisoformat(os.environ.setdefault(_DAY, day))


def load_profile() -> None:
    """Settings of all property tests."""
    seed_day()  # processes that start later inherit it
    settings.register_profile(
        "seeded",
        max_examples=examples(100),
        # The seed is all that decides, not what an earlier run has left on the disk, nor how busy the machine is.
        derandomize=False,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
    settings.load_profile("seeded")
    # Hypothesis tries constants of the modules that are loaded by then, so that a test alone would see other examples
    # than within its session.
    providers._get_local_constants = _constants_of_the_package


@cache
def _constants_of_the_package() -> Constants:
    found = Constants()
    for path in sorted(_PACKAGE.rglob("*.py")):
        module = ModuleType(path.stem)
        module.__file__ = str(path)
        found |= constants_from_module(module)
    return providers._local_constants | found  # which sorts them


def choose_seed(config: pytest.Config) -> None:
    """Set the seed of a session, unless the command line has; pytest-xdist hands it on to its workers."""
    if config.option.hypothesis_seed is None:
        seed = random.randrange(10**9) if IS_SOAK else int(f"{seed_day():%Y%m%d}")
        config.option.hypothesis_seed = str(seed)


def repeat_command(config: pytest.Config, nodeid: str) -> str:
    """The command that runs one test with the examples of this session."""
    variables = "".join(f"{name}={os.environ[name]} " for name in (EXAMPLES, SOAK) if os.environ.get(name))
    return (
        f"{variables}.venv/bin/python -m pytest {shlex.quote(nodeid)} --hypothesis-seed={config.option.hypothesis_seed}"
    )
