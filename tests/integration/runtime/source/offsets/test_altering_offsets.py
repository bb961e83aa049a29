"""Offsets of a source that are set or deleted by hand, in its offsets topic, fenced like a run."""

from __future__ import annotations

import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.entry import reset_offsets, set_offsets
from airflow_connect.runtime.driver.source import run as source_run
from tests.integration.connectors.file_stream.source.conftest import MakeLines, make_lines
from tests.integration.runtime.source.conftest import Numbers

__all__ = ["make_lines"]
pytestmark = pytest.mark.integration


def test_source_offsets_are_set_and_deleted_and_the_next_run_starts_there(numbers: Numbers) -> None:
    numbers.feed(5, 5)
    numbers.run()

    done = set_offsets(numbers.spec(), {"offsets": [{"partition": {"p": 0}, "offset": {"n": 3}}]})

    assert done.altered == 1
    assert done.before == [{"partition": {"p": 0}, "offset": {"n": 5}}]
    assert done.after == [{"partition": {"p": 0}, "offset": {"n": 3}}]
    assert numbers.run().records == 2
    assert reset_offsets(numbers.spec(), [{"p": 1}]).after == [{"partition": {"p": 1}, "offset": None}]
    assert numbers.run().records == 5
    assert reset_offsets(numbers.spec()).altered == 2
    assert reset_offsets(numbers.spec()).altered == 0
    assert numbers.run().records == 10


def test_alteration_fences_a_run_of_the_source(numbers: Numbers, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers.feed(5)
    numbers.run()
    numbers.feed(9)
    spec = numbers.spec()

    def alter_once(point: str) -> None:
        if point == crash_points.SOURCE_PLANNED:
            monkeypatch.undo()
            set_offsets(spec, [{"partition": {"p": 0}, "offset": {"n": 4}}])

    monkeypatch.setattr(source_run, "reached", alter_once)
    fenced = numbers.try_run()

    assert fenced.error is not None and fenced.error["code"] == "run.fenced", fenced.error
    assert numbers.values() == {0: list(range(5))}
    assert numbers.run().records == 5
    assert numbers.values() == {0: [*range(5), *range(4, 9)]}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("earliest", "REST API"),
        ([{"partition": {"filename": "/x"}, "offset": {"position": -1}}], "should be a non-negative value"),
    ],
)
def test_wrong_offsets_of_a_source_are_refused(make_lines: MakeLines, given: object, words: str) -> None:
    lines = make_lines()
    with pytest.raises(ConfigError, match=words):
        set_offsets(lines.spec(), given)


def test_connector_may_refuse_what_would_have_no_effect_beside_its_offsets(numbers: Numbers) -> None:
    table = {
        "connector_class": "JdbcSource", "connection_url": "jdbc:sqlite:/none", "mode": "incrementing",
        "topic_prefix": "db-", "topic": None, "numbers_file": None, "numbers_topic_partitions": None,
    }  # fmt: skip
    full, oldest = {"protocol": "1", "table": "o"}, {"table": "o"}
    spec = numbers.spec(**table)
    set_offsets(spec, [{"partition": one, "offset": {"incrementing": 3}} for one in (oldest, full)])

    with pytest.raises(ConfigError, match="would have no effect"):
        set_offsets(spec, [{"partition": oldest, "offset": {"incrementing": 0}}])
    with pytest.raises(ConfigError, match="under an older form"):
        reset_offsets(spec, [full])

    assert reset_offsets(spec).altered == 2
