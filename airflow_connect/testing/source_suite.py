r"""The conformance suite of sources. A subclass says how its connector is configured, and how to feed it.

class TestMySource(SourceConformance):
    connector_class = "my_package.source:MySourceConnector"

    def connector_config(self, place, topic):
        return {"my.file": str(place / "in.txt"), "topic": topic}

    def feed(self, place, first, count):
        lines = [f"line {n}" for n in range(first, first + count)]
        with (place / "in.txt").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        return lines
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from airflow_connect.api import connector_keys as keys
from airflow_connect.api.source import ExactlyOnceSupport
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.run import validate_connector
from airflow_connect.testing.source_case import SourceCase, required_keys

KILL_POINTS = (*crash_points.SOURCE_DRIVER_POINTS, *crash_points.SOURCE_TASK_POINTS)
GARBAGE = ("", " ", "-1", "no such thing", "9" * 30, "\u0000")


class SourceConformance:
    """What every source must do. Values are compared as JSON without schemas.

    Attributes:
        connector_class: as in `connector.class`.
        keeps_order: whether one task returns records in the order in which they were fed.
        reads_again: whether records are there again when offsets are deleted; False for sources that forget.
    """

    connector_class: ClassVar[str]
    keeps_order: ClassVar[bool] = True
    reads_again: ClassVar[bool] = True

    def connector_config(self, place: Any, topic: str) -> Mapping[str, str]:
        """The connector's own keys: read from `place`, write to `topic`."""
        raise NotImplementedError

    def feed(self, place: Any, first: int, count: int) -> Sequence[Any]:
        """Make `count` more records appear in `place`; returns their values. `first` were fed before."""
        raise NotImplementedError

    def value_of(self, value: Any) -> Any:
        """What to compare of a value in the topic with what `feed` returned."""
        return value

    def worker_config(self) -> Mapping[str, str]:
        """More keys of the worker."""
        return {}

    @pytest.fixture
    def place(self, tmp_path: Path) -> Any:
        """An empty place for one test; override it for a database, a server."""
        return tmp_path

    @pytest.fixture
    def case(self, kafka_bootstrap: str, place: Any) -> SourceCase:
        """A connector with an empty topic."""
        return SourceCase(self, kafka_bootstrap, place)

    # --- configuration --------------------------------------------------------------------------------------------

    def test_missing_required_key_is_named(self, case: SourceCase) -> None:
        for key in required_keys(case.config(), case.connector):
            without = {name: value for name, value in case.config().items() if name != key}
            found = validate_connector(replace(case.spec(), connector=without))
            errors = [f["message"] for f in found if f["level"] == "error"]
            assert any(key in message for message in errors), f"Nothing says that {key} is missing: {errors}"

    def test_right_configuration_has_no_errors(self, case: SourceCase) -> None:
        assert [f for f in validate_connector(case.spec()) if f["level"] == "error"] == []

    def test_validate_never_raises(self, case: SourceCase) -> None:
        connector = case.connector
        connector.validate({})
        for key in connector.config_def.keys:
            for text in GARBAGE:
                values = connector.validate({**case.config(), key: text})
                assert all(isinstance(e, str) and e for v in values for e in v.errors), f"{key}={text!r} has no message"

    def test_exactly_once_that_is_not_supported_is_refused(self, case: SourceCase) -> None:
        support = case.connector().exactly_once_support(case.config())
        found = validate_connector(case.spec(exactly_once_support="required"))

        refused = [f["key"] for f in found if f["level"] == "error"]
        assert refused == ([] if support is ExactlyOnceSupport.SUPPORTED else ["exactly.once.support"])

    # --- copying --------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("columnar", [True, False], ids=["columnar", "records"])
    def test_every_record_arrives(self, case: SourceCase, columnar: bool) -> None:
        case.feed(1500)

        report = case.run(columnar=columnar)

        assert (report.status, report.records) == ("done", 1500)
        case.check_everything_arrived()
        if self.keeps_order:
            case.check_order()
        assert case.offsets(), "No offset was committed."

    def test_run_with_nothing_new_copies_nothing(self, case: SourceCase) -> None:
        case.feed(10)
        case.run()
        offsets = case.offsets()

        report = case.run()

        assert report.records == 0
        assert case.offsets() == offsets
        case.check_everything_arrived()

    def test_next_run_copies_what_is_new_whatever_the_number_of_tasks(self, case: SourceCase) -> None:
        for count, tasks in ((20, "1"), (1, "3"), (30, "2"), (7, "1")):
            case.feed(count)
            assert case.run(tasks_max=tasks).records == count
        case.check_everything_arrived()

    def test_limited_runs_together_copy_everything(self, case: SourceCase) -> None:
        case.feed(3000)

        for _ in range(3000):
            if case.run(run_max_records="1").records == 0:
                break
        case.check_everything_arrived()

    def test_records_come_again_when_offsets_are_deleted(self, case: SourceCase) -> None:
        if not self.reads_again:
            return  # The source says that it forgets what was committed.
        case.feed(12)
        case.run()

        case.delete_offsets()
        assert case.offsets() == []
        case.run()

        case.fed += case.fed
        case.check_everything_arrived()

    # --- guarantees and crashes -----------------------------------------------------------------------------------

    @pytest.mark.parametrize("guarantee", [keys.AT_LEAST_ONCE, keys.AT_MOST_ONCE])
    def test_run_that_is_not_killed_copies_once_with_any_guarantee(self, case: SourceCase, guarantee: str) -> None:
        for count in (9, 4):
            case.feed(count)
            report = case.run(delivery_guarantee=guarantee)
            assert (report.records, report.delivery_guarantee) == (count, guarantee)
        case.check_everything_arrived()

    def test_kill_at_every_step_loses_nothing(self, case: SourceCase) -> None:
        survived = set()
        for point in KILL_POINTS:
            case.feed(3)
            if case.start(crash_at=point).wait() is not None:
                survived.add(point)

        case.run()

        assert survived == set()
        case.check_everything_arrived(once=self._is_once(case))

    def test_two_runs_at_once_copy_as_promised(self, case: SourceCase) -> None:
        case.feed(60)

        reports = [process.wait() for process in [case.start(), case.start()]]
        case.run()

        assert all(r is not None and (r.error is None or r.error["code"] == "run.fenced") for r in reports), reports
        case.check_everything_arrived(once=self._is_once(case))

    def _is_once(self, case: SourceCase) -> bool:
        return case.connector().exactly_once_support(case.config()) is not ExactlyOnceSupport.UNSUPPORTED
