"""The conformance suite of sinks. A subclass defines the connector's configuration, and how to read back its output.

class TestMySink(SinkConformance):
    connector_class = "my_package.sink:MySinkConnector"

    def connector_config(self, target):
        return {"my.folder": str(target)}

    def read_back(self, target):
        return [json.loads(line) for file in sorted(target.glob("*")) for line in file.read_text().splitlines()]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from airflow_connect.api.sink import Delivery, SinkConnector
from airflow_connect.config.keys import sink as keys
from airflow_connect.config.keys.sink import SinkKeys
from airflow_connect.runtime import crash_points
from airflow_connect.testing.cases.sink_case import PARTITIONS, SinkCase
from airflow_connect.testing.lifecycle import check_order_of_calls
from airflow_connect.testing.suites.connector_suite import ConnectorConformance
from airflow_connect.testing.topics import Row

ALWAYS_PASSED = {
    crash_points.FENCED,
    crash_points.RECOVERED,
    crash_points.PLANNED,
    crash_points.BEGUN,
    crash_points.TASK_READING,
    crash_points.TASK_STAGED,
    crash_points.COPIED,
    crash_points.AUDITED,
    crash_points.COMMITTED,
}
"""Steps of every run that has something to copy; other steps depend on the features of the sink."""


def overrides_alter_offsets(connector: type[SinkConnector]) -> bool:
    """Whether a connector has a record of its own of the offsets, and updates it."""
    return connector.alter_offsets is not SinkConnector.alter_offsets


class SinkConformance(ConnectorConformance):
    """What every sink must do. All values are objects `{"n": number, "p": partition}`, in JSON without schemas.

    Attributes:
        connector_class: as in `connector.class`.
        stores_tombstones: whether a null value is stored, as None in `read_back`; otherwise it is skipped.
        errant_value: JSON text of a value that the sink itself reports as errant; "" if there is none.
    """

    stores_tombstones: ClassVar[bool] = False
    errant_value: ClassVar[str] = ""

    def connector_config(self, target: Any) -> Mapping[str, str]:
        """The connector's own keys, for `target`."""
        raise NotImplementedError

    def read_back(self, target: Any) -> Sequence[Any]:
        """Every value that is visible in `target`; values of one partition in their stored order."""
        raise NotImplementedError

    @pytest.fixture
    def target(self, tmp_path: Path) -> Any:
        """An empty directory for one test; override it for a database, a bucket or a server."""
        return tmp_path

    @pytest.fixture
    def case(self, kafka_bootstrap: str, target: Any) -> SinkCase:
        """A connector on an empty topic."""
        return SinkCase(self, kafka_bootstrap, target)

    # --- configuration --------------------------------------------------------------------------------------------

    def test_delivery_guarantee_that_the_sink_cannot_keep_is_refused(self, case: SinkCase) -> None:
        refused = {
            Delivery.STAGED: set[str](),
            Delivery.IDEMPOTENT: {keys.AT_MOST_ONCE},
            Delivery.TRANSACTIONAL: {keys.AT_MOST_ONCE},
            Delivery.AT_LEAST_ONCE: {keys.AT_MOST_ONCE, keys.EXACTLY_ONCE},
        }[case.connector.delivery]
        for guarantee in (keys.EXACTLY_ONCE, keys.AT_LEAST_ONCE, keys.AT_MOST_ONCE):
            report = case.try_run(delivery_guarantee=guarantee)
            if guarantee in refused:
                assert report.error is not None and report.error["configPath"] == SinkKeys.delivery_guarantee.name
            else:
                assert report.status == "empty", report.error

    # --- copying --------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("columnar", [True, False], ids=["columnar", "records"])
    def test_every_record_arrives_in_order(self, case: SinkCase, columnar: bool) -> None:
        case.add(1500)

        report = case.run(columnar=columnar)

        assert (report.status, report.records, report.dead_lettered, report.left) == ("done", 1500, 0, 0)
        case.check_everything_arrived(once=True)
        case.check_order()
        assert case.committed() == dict.fromkeys(range(PARTITIONS), 500)

    def test_run_with_nothing_new_is_empty(self, case: SinkCase) -> None:
        case.add(10)
        case.run()
        before = list(case.found())

        report = case.run()

        assert (report.status, report.records) == ("empty", 0)
        assert list(case.found()) == before

    def test_next_run_copies_what_is_new(self, case: SinkCase) -> None:
        for count in (20, 1, 30):
            case.add(count)
            assert case.run().records == count
        case.check_everything_arrived(once=True)
        case.check_order()

    def test_limited_runs_together_copy_everything(self, case: SinkCase) -> None:
        case.add(30)

        reports = [case.run(run_max_records="12") for _ in range(4)]

        assert [report.status for report in reports] == ["done", "done", "done", "empty"]
        case.check_everything_arrived(once=True)

    def test_partitions_are_shared_by_tasks_only_if_the_sink_allows_it(self, case: SinkCase) -> None:
        case.add(90)
        more_tasks = 2 * PARTITIONS

        report = case.run(tasks_max=str(more_tasks), split_min_records="10")

        is_shared = any(note.startswith("Several tasks share a partition:") for note in report.notes)
        is_explained = any(note.startswith(f"tasks.max={more_tasks}, but one task copies") for note in report.notes)
        assert is_shared != is_explained, report.notes
        assert (report.tasks > PARTITIONS) == is_shared
        case.check_everything_arrived(once=True)
        case.check_order()
        assert case.committed() == dict.fromkeys(range(PARTITIONS), 30)

    def test_null_keys_headers_and_tombstones_pass(self, case: SinkCase) -> None:
        case.add(3)
        case.write_rows(Row(0, None, b'{"n": 3, "p": 0}', [("h", b"1"), ("h", None), ("", b"\xff")]))
        case.write_rows(Row(1, b"gone", None), Row(2, None, None))
        case.written += [{"n": 3, "p": 0}, *([None, None] if self.stores_tombstones else [])]

        report = case.run()

        assert report.records + report.filtered + report.dead_lettered == 6
        case.check_everything_arrived()
        assert case.committed() == dict.fromkeys(range(PARTITIONS), 2)

    # --- offsets and errors ---------------------------------------------------------------------------------------

    def test_records_that_come_again_are_there_as_promised(self, case: SinkCase) -> None:
        if case.connector.delivery is Delivery.STAGED:
            return  # The meaning of a second copy of published files is up to the sink; crashes are tested below.
        case.add(30)
        case.run()

        case.reset(0)
        case.reset(0)
        report = case.run()

        # A target that stores offsets does not get the same records again, unless it has set them as requested.
        stores = case.connector.delivery is Delivery.TRANSACTIONAL
        sets = stores and overrides_alter_offsets(case.connector)
        assert report.records == (0 if stores and not sets else 30)
        case.check_everything_arrived(once=False if sets else None)

    def test_offsets_that_were_set_are_where_the_next_run_begins(self, case: SinkCase) -> None:
        case.add(30)

        case.reset(8)
        report = case.run()

        assert report.records == 30 - 8 * PARTITIONS
        case.written = case.written[8 * PARTITIONS :]
        case.check_everything_arrived()

    def test_broken_record_goes_to_the_dead_letter_queue(self, case: SinkCase) -> None:
        for bad in filter(None, (b'{"n": broken', self.errant_value.encode())):
            before = len(case.topics.read(f"{case.topic}-dlq")) if case.committed() else 0
            case.add(30)
            case.write_rows(Row(1, b"bad", bad, [("h", b"kept")]))
            case.add(30)

            report = case.run(
                errors_tolerance="all",
                errors_deadletterqueue_topic_name=f"{case.topic}-dlq",
                errors_deadletterqueue_topic_replication_factor="1",
            )

            assert (report.records, report.dead_lettered) == (60, 1)
            letters = case.topics.read(f"{case.topic}-dlq")[before:]
            assert [(m.key(), m.value(), m.headers()) for m in letters] == [(b"bad", bad, [("h", b"kept")])]
            case.check_everything_arrived()

    def test_broken_record_without_tolerance_moves_no_offset(self, case: SinkCase) -> None:
        case.add(6)
        case.write_rows(Row(1, b"bad", b'{"n": broken'))

        report = case.try_run()

        assert report.error is not None and f"{case.topic}-1@2" in report.error["message"]
        assert case.committed() == {}
        if case.connector.delivery is Delivery.STAGED:
            assert list(case.found()) == []

    # --- crashes --------------------------------------------------------------------------------------------------

    def test_kill_at_every_step_loses_nothing(self, case: SinkCase) -> None:
        survived = set()
        for point in (*crash_points.DRIVER_POINTS, *crash_points.TASK_POINTS):
            case.add(12)
            if case.start(crash_at=point).wait() is not None:
                survived.add(point)

        reports = [case.start().wait() for _ in range(2)]

        assert survived & ALWAYS_PASSED == set()
        assert [report.status if report else "killed" for report in reports] == ["done", "empty"], reports
        case.check_everything_arrived()
        assert case.committed() == dict.fromkeys(range(PARTITIONS), len(case.written) // PARTITIONS)

    # --- the task -------------------------------------------------------------------------------------------------

    def test_task_is_called_in_order_and_always_stopped(self, case: SinkCase) -> None:
        if hasattr(case.connector, "task_class"):
            check_order_of_calls(case.connector, case.config(), case.topic)
