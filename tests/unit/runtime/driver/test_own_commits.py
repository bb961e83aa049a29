"""Offsets that the tasks of a run have moved themselves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.own_offsets import MEMBER_CLIENT
from airflow_connect.exactly_once.state import CLOSED, ConnectorState
from airflow_connect.kafka.admin.consumer_group import Member
from airflow_connect.planning.planner import LogState
from airflow_connect.runtime.driver.sink import own_commits
from airflow_connect.runtime.driver.sink.own_commits import moved_by_tasks, with_unjudged

A, B, C, D = (TopicPartition("t", number) for number in range(4))


def test_only_offsets_within_the_plan_are_those_of_tasks() -> None:
    ranges = [OffsetRange(*tp, 10, 20) for tp in (A, B, C)]
    assert moved_by_tasks(ranges, {A: 10, B: 20, C: 21}) == {A, B}
    assert moved_by_tasks(ranges, {A: 9}) == frozenset()


@pytest.mark.parametrize(("commits", "tolerates"), [(True, True), (False, True), (True, False)])
def test_records_of_a_run_without_an_end_are_read_again_if_errors_are_tolerated(commits: bool, tolerates: bool) -> None:
    log = LogState({"t": "id"}, {A: 0, B: 8, C: 0, D: 0}, dict.fromkeys((A, B, C, D), 20), {A: 12, B: 12, C: 3, D: 21})
    config: Any = SimpleNamespace(
        commits_offsets=commits,
        resolved=SimpleNamespace(connector=SimpleNamespace(errors=SimpleNamespace(tolerate=tolerates))),
        sink=SimpleNamespace(unjudged=lambda kept: kept["starts"]),
    )
    # B no longer holds the records, C was set back by somebody, and no task has committed what D has.
    state = ConnectorState("c", "run", CLOSED, 1, kept={"starts": dict.fromkeys((A, B, C, D), 5)})
    found = with_unjudged(config, log, state).committed
    assert found == ({A: 5, B: 12, C: 3, D: 21} if commits and tolerates else log.committed)
    assert with_unjudged(config, log, None) is log


@pytest.mark.parametrize(
    ("found", "questions"),
    [
        ([[]], 1),
        ([[MEMBER_CLIENT], [MEMBER_CLIENT], []], 3),
        ([[MEMBER_CLIENT, "a worker"]], 1),
    ],
)
def test_members_of_a_killed_run_are_waited_for_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch, found: list[list[str]], questions: int
) -> None:
    asked = []

    def group_state(_admin: object, _group: str) -> tuple[str, tuple[Member, ...]]:
        asked.append(1)
        return "stable", tuple(Member(client, "host") for client in found[len(asked) - 1])

    monkeypatch.setattr(own_commits, "group_state", group_state)
    own_commits.wait_for_killed_tasks(None, "connect-c", {})  # type: ignore[arg-type]
    assert len(asked) == questions
