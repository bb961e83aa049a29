"""The list of tests that are left to `make soak`: each is there, and so is what stands for it in `make test`."""

from __future__ import annotations

import subprocess
import sys

from tests.support.session.long_tests import LIST, LongTest, long_tests
from tests.support.session.many_cases import check_each

PROJECT = LIST.parents[1]
LONG = long_tests()


def exists(nodeid: str) -> bool:
    """Whether the file has such a test; the names of cases are not looked at."""
    file, _, test = nodeid.partition("::")
    name = test.partition("[")[0].rpartition("::")[2]
    path = PROJECT / file
    return path.is_file() and f"def {name}" in path.read_text()


def test_long_tests_and_those_that_stand_for_them_exist() -> None:
    def check(one: LongTest) -> None:
        assert exists(one.prefix)
        assert exists(one.instead)
        assert not any(one.instead.startswith(other.prefix) for other in LONG), "It is left to the soak itself."

    check_each(LONG, lambda one: one.prefix, check)


def test_only_the_soak_and_who_names_them_run_them() -> None:
    first = next(one.prefix for one in LONG if one.prefix.startswith("tests/architecture/"))  # imports little
    file = first.partition("::")[0]
    for more, expected in ([file], False), ([first], True), (["-m", "long", file], True):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", *more]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
        assert (first in done.stdout.splitlines()) == expected, done.stdout + done.stderr
