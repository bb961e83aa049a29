from __future__ import annotations

from airflow_connect.counting import names


def test_names_of_many_values_are_cut() -> None:
    assert names(range(7), limit=3) == "0, 1, 2 and 4 more"
    assert names(["a"]) == "a"
