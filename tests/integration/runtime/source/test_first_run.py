"""A source's first run and the next ones: records, offsets, reports."""

from __future__ import annotations

from tests.integration.runtime.source.conftest import Numbers


def test_first_run_copies_everything_and_the_next_one_what_is_new(numbers: Numbers):
    numbers.feed(30, 20, 5)

    first = numbers.run()
    again = numbers.run()
    numbers.feed(31, 20, 9)
    third = numbers.run()

    assert (first.status, first.records, first.tasks, first.delivery_guarantee) == ("done", 55, 2, "exactly_once")
    assert (again.status, again.records) == ("empty", 0)
    assert (third.status, third.records) == ("done", 5)
    numbers.assert_exactly_once(31, 20, 9)
