from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.layout.code_groups import group_by_code

CODES = st.lists(st.integers(0, 5) | st.integers(0, 100_000), min_size=1, max_size=200)


@given(CODES)
def test_groups_hold_every_record_in_order_and_come_by_first_appearance(codes: list[int]) -> None:
    order, groups = group_by_code(np.array(codes, dtype=np.int32))
    places = list(range(len(codes))) if order is None else order.tolist()
    found = {g.code: places[g.low : g.high] for g in groups}
    expected: dict[int, list[int]] = {}
    for index, code in enumerate(codes):
        expected.setdefault(code, []).append(index)
    assert found == expected and list(found) == list(expected)
    assert all((g.first, g.last) == (found[g.code][0], found[g.code][-1]) for g in groups)
