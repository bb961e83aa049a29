"""What every connector must do, whether sink or source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from airflow_connect.testing.cases.connector_case import ConnectorCase

GARBAGE = ("", " ", "-1", "no such thing", "9" * 30, "\u0000")


class ConnectorConformance:
    """The common part of `SinkConformance` and `SourceConformance`. They provide the fixture `case`.

    Attributes:
        connector_class: as in `connector.class`.
    """

    connector_class: ClassVar[str]

    def worker_config(self) -> Mapping[str, str]:
        """More keys of the worker."""
        return {}

    def test_missing_required_key_is_named(self, case: ConnectorCase) -> None:
        for key in case.own_required_keys():
            messages = [error["message"] for error in case.errors(without=key)]
            assert any(key in message for message in messages), f"No message names the missing key {key}: {messages}"

    def test_right_configuration_has_no_errors(self, case: ConnectorCase) -> None:
        assert case.errors() == []

    def test_validate_never_raises(self, case: ConnectorCase) -> None:
        connector = case.connector
        connector.validate({})
        for key in connector.config_def.keys:
            for text in GARBAGE:
                values = connector.validate({**case.config(), key: text})
                assert all(isinstance(e, str) and e for v in values for e in v.errors), f"{key}={text!r} has no message"

    def test_two_runs_at_once_copy_as_promised(self, case: ConnectorCase) -> None:
        case.add(60)

        reports = [process.wait() for process in [case.start(), case.start()]]
        case.run()

        assert all(r is not None and (r.error is None or r.error["code"] == "run.fenced") for r in reports), [
            r and r.error for r in reports
        ]
        case.check_everything_arrived()
