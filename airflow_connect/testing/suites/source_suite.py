r"""The conformance suite of sources. A subclass defines the connector's configuration, and how to feed it.

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
from pathlib import Path
from typing import Any, ClassVar

import pytest

from airflow_connect.api.source import ExactlyOnceSupport
from airflow_connect.config.keys import sink as keys
from airflow_connect.kafka.state.offsets.offsets_topic import identity
from airflow_connect.kafka.state.offsets.offsets_view import OffsetsView
from airflow_connect.runtime import crash_points
from airflow_connect.testing.cases.source_case import SourceCase
from airflow_connect.testing.suites.connector_suite import ConnectorConformance

BOTH_STYLES = pytest.mark.parametrize("columnar", [True, False], ids=["columnar", "records"])
"""A source without columns returns records in both cases."""
KILL_POINTS = (*crash_points.SOURCE_DRIVER_POINTS, *crash_points.SOURCE_TASK_POINTS)


class SourceConformance(ConnectorConformance):
    """What every source must do. Values are compared as JSON without schemas.

    Attributes:
        connector_class: as in `connector.class`.
        measures: whether each run measures again everything that was fed, instead of resuming where the last one ended.
            A run that is killed may then have committed some of it.
        keeps_order: whether one task returns records in the order in which they were fed.
        reads_again: whether records are available again after offsets are deleted; False for sources that forget.
    """

    measures: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = True
    reads_again: ClassVar[bool] = True

    def connector_config(self, place: Any, topic: str) -> Mapping[str, str]:
        """The connector's own keys: read from `place`, write to `topic`."""
        raise NotImplementedError

    def feed(self, place: Any, first: int, count: int) -> Sequence[Any]:
        """Add `count` more records to `place`; returns their values, in order. `first` records were fed before."""
        raise NotImplementedError

    def value_of(self, value: Any) -> Any:
        """The part of a value in the topic that is compared with what `feed` returned."""
        return value

    @pytest.fixture
    def place(self, tmp_path: Path) -> Any:
        """An empty directory for one test; override it for a database or a server."""
        return tmp_path

    @pytest.fixture
    def case(self, kafka_bootstrap: str, place: Any) -> SourceCase:
        """A connector with an empty topic."""
        return SourceCase(self, kafka_bootstrap, place)

    # --- configuration --------------------------------------------------------------------------------------------

    def test_exactly_once_that_is_not_supported_is_refused(self, case: SourceCase) -> None:
        refused = [error["key"] for error in case.errors(exactly_once_support="required")]
        is_supported = case.exactly_once_support is ExactlyOnceSupport.SUPPORTED
        assert refused == ([] if is_supported else ["exactly.once.support"])

    # --- copying --------------------------------------------------------------------------------------------------

    @BOTH_STYLES
    def test_every_record_arrives(self, case: SourceCase, columnar: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        in_columns = _batches_in_columns(case, monkeypatch)
        case.add(1500)

        report = case.run(columnar=columnar)

        assert (report.status, report.records) == ("done", 1500)
        assert bool(in_columns) == (columnar and case.has_columns), f"{len(in_columns)} batches came in columns."
        case.check_everything_arrived(once=True)
        if self.keeps_order:
            case.check_order()
        assert case.offsets(), "No offset was committed."

    def test_run_with_nothing_new_copies_nothing(self, case: SourceCase) -> None:
        if self.measures:
            return  # There is always new data.
        case.add(10)
        case.run()
        offsets = case.offsets()

        report = case.run()

        assert report.records == 0
        assert case.offsets() == offsets
        case.check_everything_arrived(once=True)

    @BOTH_STYLES
    def test_next_run_copies_what_is_due_whatever_the_number_of_tasks(self, case: SourceCase, columnar: bool) -> None:
        for count, tasks in ((20, "1"), (1, "3"), (30, "2"), (7, "1")):
            case.add(count)
            due = len(case.due)
            assert case.run(columnar=columnar, tasks_max=tasks).records == due
        case.check_everything_arrived(once=True)

    def test_limited_runs_together_copy_everything(self, case: SourceCase) -> None:
        if self.measures:
            return  # Data beyond a limit is lost.
        case.add(3000)

        for _ in range(30):  # enough even if tasks share the limit unevenly
            if case.run(run_max_records="1000").records == 0:
                break
        case.check_everything_arrived(once=True)

    def test_records_come_again_when_offsets_are_deleted(self, case: SourceCase) -> None:
        if not self.reads_again:
            return  # The source forgets what was committed.
        case.add(12)
        case.run()

        case.delete_offsets()
        assert case.offsets() == []
        case.run()

        case.check_everything_arrived(once=True)

    def test_tasks_need_only_the_offsets_that_the_connector_names(
        self, case: SourceCase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Otherwise each task reads the offsets topics again. Without `source_partitions`, a task gets all offsets."""
        case.add(20)
        case.run(tasks_max="3")
        known = {identity(partition) for partition, _ in case.offsets()}
        case.add(20)
        unexpected = _unexpected_lookups(monkeypatch)

        case.run(tasks_max="3")

        assert not known.intersection(unexpected), "A task needed the offset of a source partition that was not named."
        case.check_everything_arrived(once=True)

    # --- guarantees and crashes -----------------------------------------------------------------------------------

    @pytest.mark.parametrize("guarantee", [keys.AT_LEAST_ONCE, keys.AT_MOST_ONCE])
    def test_run_that_is_not_killed_copies_once_with_any_guarantee(self, case: SourceCase, guarantee: str) -> None:
        for count in (9, 4):
            case.add(count)
            due = len(case.due)
            report = case.run(delivery_guarantee=guarantee)
            assert (report.records, report.delivery_guarantee) == (due, guarantee)
        case.check_everything_arrived(once=True)

    @BOTH_STYLES
    def test_kill_at_every_step_loses_nothing(self, case: SourceCase, columnar: bool) -> None:
        if columnar and not case.has_columns:
            return  # The other parameter of this test covers it.
        survived = set()
        for point in KILL_POINTS:
            case.add(3)
            if case.start(crash_at=point, columnar=columnar).wait() is not None:
                survived.add(point)

        case.run(columnar=columnar)

        assert survived == set()
        case.check_everything_arrived()


def _unexpected_lookups(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """A set that collects the source partitions that a task in this process needs but did not get."""
    found: set[str] = set()
    real = OffsetsView.tells

    def tells(view: OffsetsView, who: str) -> bool:
        told = real(view, who)
        if not told:
            found.add(who)
        return told

    monkeypatch.setattr(OffsetsView, "tells", tells)
    return found


def _batches_in_columns(case: SourceCase, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A list that collects the batches that tasks in this process return in columns."""
    found: list[Any] = []
    if case.has_columns:
        task_class = case.connector.task_class
        real = task_class.poll_columns

        def poll_columns(task: Any) -> Any:
            columns = real(task)
            if columns is not None:
                found.append(columns)
            return columns

        monkeypatch.setattr(task_class, "poll_columns", poll_columns)
    return found
