"""What an alteration of offsets would change, from offsets alone."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.observe.inspecting.previewing import changes_between

FILE = {"filename": "x"}


def of_sink(number: int | str, offset: int | None) -> dict[str, Any]:
    partition = {"kafka_topic": "t", "kafka_partition": number}
    return {"partition": partition, "offset": None if offset is None else {"kafka_offset": offset}}


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        (5, 5, "no change"),
        (5, 3, "copies 2 offsets again"),
        (5, 8, "skips 3 offsets"),
        (5, None, "starts as if it had never run (auto.offset.reset)"),
        (None, 3, "starts at 3"),
    ],
)
def test_effect_on_a_sink(before: int | None, after: int | None, effect: str) -> None:
    known = [] if before is None else [of_sink(0, before)]
    (change,) = changes_between(known, [of_sink("0", after)])  # People write numbers as text, too.
    assert (change.effect, change.entry["offset"]) == (effect, None if after is None else {"kafka_offset": after})


@pytest.mark.parametrize(
    ("after", "effect"),
    [({"position": 4}, "no change"), ({"position": 2}, "continues there"), (None, "reads it from the beginning")],
)
def test_effect_on_a_source(after: Any, effect: str) -> None:
    known = [{"partition": FILE, "offset": {"position": 4}}]
    (change,) = changes_between(known, [{"partition": FILE, "offset": after}])
    assert (change.before, change.effect) == ({"position": 4}, effect)
