"""When runs of Java sources end, and in which order their records are."""

from __future__ import annotations

import pytest

from tests.conftest import MakeTopic
from tests.integration.connectors.java.conftest import MakeConnector
from tests.integration.connectors.java.test_sources import TWENTY, routed, values

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]


def test_poll_that_takes_long_is_no_idle_time(make_connector: MakeConnector, make_topic: MakeTopic) -> None:
    """Two tables are empty, and the query of the third takes longer than the idle time."""
    topic = make_topic()
    connector = routed(make_connector("SlowSources$OneSlowTable", slow="3000"), topic)
    report = connector.run()
    assert (report.status, values(connector, topic)) == ("done", TWENTY[:10])


def test_connector_that_knows_its_tables_late_is_not_empty(
    make_connector: MakeConnector, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    connector = routed(make_connector("SlowSources$LateTables", late="1500"), topic)
    report = connector.run(airflow_java_start_grace_ms="20000")
    assert (report.status, values(connector, topic)) == ("done", TWENTY)


def test_connector_without_tasks_says_so(make_connector: MakeConnector, make_topic: MakeTopic) -> None:
    connector = routed(make_connector("SlowSources$LateTables", late="100000"), make_topic())
    report = connector.run()
    assert report.status == "empty"
    assert any("has no task" in note for note in report.notes), report.notes


def test_request_for_other_tasks_is_in_the_report(make_connector: MakeConnector, make_topic: MakeTopic) -> None:
    connector = routed(make_connector("SlowSources$LateTables", late="1", known="first"), make_topic())
    report = connector.run()
    assert any("requested other tasks" in note for note in report.notes), report.notes


def test_records_with_and_without_a_partition_keep_their_order(
    make_connector: MakeConnector, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    connector = routed(make_connector("SlowSources$SomePartitions"), topic)
    connector.run()
    assert values(connector, topic) == TWENTY


def test_limit_ends_a_run_of_small_batches(make_connector: MakeConnector, make_topic: MakeTopic) -> None:
    topic = make_topic()
    keys = {"files": "1", "rows": "5000", "batch": "100", "count": "1", "prefix": "x"}
    connector = routed(make_connector("ResumingSource", **keys), topic)
    report = connector.run(run_max_records="600")
    assert 600 <= report.records <= 1300
    assert values(connector, topic) == [f"0:{n}" for n in range(report.records)]
