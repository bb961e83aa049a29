"""Log levels over REST."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from airflow_connect.control.herder.loggers import Loggers, checked_level
from airflow_connect.control.herder.refusals import RefusedError


@pytest.fixture
def tree(unique_name: str) -> Iterator[str]:
    """A logger with two below it; their levels are restored."""
    names = [unique_name, f"{unique_name}.a", f"{unique_name}.a.b"]
    for name in names:
        logging.getLogger(name)
    yield unique_name
    for name in names:
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_a_level_is_set_for_a_logger_and_all_below_it(tree):
    loggers = Loggers()
    assert loggers.set(tree, "DEBUG") == [tree, f"{tree}.a", f"{tree}.a.b"]
    assert loggers.one(f"{tree}.a.b")["level"] == "DEBUG"
    assert logging.getLogger(f"{tree}.a").isEnabledFor(logging.DEBUG)


def test_only_loggers_that_change_are_named(tree):
    loggers = Loggers()
    loggers.set(f"{tree}.a", "ERROR")
    assert loggers.set(tree, "ERROR") == [tree]
    assert loggers.set(tree, "ERROR") == []


@pytest.mark.parametrize("level", ["ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"])
def test_every_level_of_log4j_reads_back(tree, level):
    loggers = Loggers()
    loggers.set(tree, "INFO" if level == "WARN" else "WARN")
    loggers.set(tree, level)
    shown = loggers.one(tree)
    assert shown["level"] == level and isinstance(shown["last_modified"], int)


def test_a_logger_that_was_not_changed_has_no_time(tree):
    assert Loggers().one(tree)["last_modified"] is None
    assert Loggers().every()[tree] == Loggers().one(tree)


def test_the_root_logger_is_found_in_any_case():
    assert Loggers().one("ROOT") == Loggers().one("root")


def test_an_unknown_logger_is_refused():
    with pytest.raises(RefusedError, match=r"Logger no\.such\.logger not found\."):
        Loggers().one("no.such.logger")


@pytest.mark.parametrize("body", [None, {}, [], "x", {"LEVEL": "INFO"}, {"level": None}])
def test_a_body_without_a_level_is_refused(body):
    with pytest.raises(RefusedError, match="Desired 'level' parameter was not specified"):
        checked_level(body)


@pytest.mark.parametrize("level", ["bogus", 5, ""])
def test_an_unknown_level_is_refused(level):
    with pytest.raises(RefusedError, match="invalid log level"):
        checked_level({"level": level})
