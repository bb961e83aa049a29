"""Ids of runs: the history of a connector is ordered by them."""

from __future__ import annotations

import re

from airflow_connect.runtime.spec import new_run_id

SECOND_MS = 1_795_228_530_000  # 2026-11-21T02:35:30Z


def test_ids_sort_by_the_millisecond_and_keep_their_form() -> None:
    ids = [new_run_id(SECOND_MS + millis) for millis in range(1000)]

    assert ids == sorted(ids)
    assert all(re.fullmatch(r"20261121T023530-[0-9a-f]{6}", found) for found in ids)
    assert new_run_id(SECOND_MS + 999) < new_run_id(SECOND_MS + 1000)


def test_ids_of_one_millisecond_differ() -> None:
    assert len({new_run_id(SECOND_MS) for _ in range(30)}) > 1


def test_id_without_a_time_is_that_of_now() -> None:
    before, after = new_run_id(), new_run_id()

    assert before[:15] <= after[:15]
