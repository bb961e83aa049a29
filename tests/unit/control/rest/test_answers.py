"""Answers hold whatever the topics hold."""

from __future__ import annotations

import json

import pytest

from airflow_connect.control.rest.answers import Json
from airflow_connect.control.rest.negotiation import accepts_json


@pytest.mark.parametrize("value", [1 << 70, "\ud800", {"a": [-(1 << 65), "\udfff"]}, "\N{PARTY POPPER}", None])
def test_every_json_that_java_writes_can_be_answered(value):
    assert json.loads(Json({"offset": value}).body) == {"offset": value}


@pytest.mark.parametrize(
    ("header", "is_accepted"),
    [("", True), ("*/*", True), ("text/html, application/json;q=0.1", True), ("application/*", True),
     ("text/plain", False), ("application/json;q=0", False), ("application/json;q=0.000", False)],
)  # fmt: skip
def test_a_client_that_does_not_accept_json_is_refused(header, is_accepted):
    assert accepts_json(header) is is_accepted
