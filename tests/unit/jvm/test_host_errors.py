"""What a plugin threw becomes the error that its kind says, with causes and place."""

from __future__ import annotations

import pickle

import pytest

from airflow_connect.errors import (
    ConfigError,
    InternalError,
    JavaDataError,
    JavaPluginError,
    JavaRetriableError,
    JavaVersionError,
    is_retriable,
)
from airflow_connect.jvm.host import plugin_error

CHAIN = ["a.B: outer.", "c.D: inner."]


@pytest.mark.parametrize(
    ("kind", "expected", "code", "retriable"),
    [
        ("plugin", JavaPluginError, "java.plugin_failed", True),
        ("retriable", JavaRetriableError, "java.retriable", True),
        ("data", JavaDataError, "java.data", False),
        ("config", ConfigError, "java.config", False),
        ("version", JavaVersionError, "java.version", False),
        ("host", InternalError, "internal.error", False),
    ],
)
def test_kind_of_a_failure_is_its_error(kind, expected, code, retriable):
    error = plugin_error({"kind": kind, "executing": "x.Task", "chain": CHAIN, "stack": "at x"}, "x.Sink, task 0")
    assert type(error) is expected
    assert (error.code, is_retriable(error)) == (code, retriable)
    assert "x.Sink, task 0 failed in x.Task: a.B: outer.; caused by c.D: inner." in error.message
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_failed_record_without_a_kind_is_an_error_of_data():
    error = plugin_error({"stage": "VALUE_CONVERTER", "class": "a.B", "message": "bad"}, "x.Sink")
    assert (type(error), error.message) == (JavaDataError, "x.Sink failed: a.B: bad.")
