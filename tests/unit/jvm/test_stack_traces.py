"""Stack traces that records of a reply share."""

from __future__ import annotations

from airflow_connect.jvm.stack_traces import fill_in


def test_traces_are_put_together_for_each_failure():
    result = {
        "failed": [[4, {"chain": ["a.A: 1", "b.B"], "trace": [0, 1]}], {"chain": ["a.A: 2"], "trace": [0]}],
        "failed_traces": ["\tat a\n", "\tat b\n\t... 1 more\n"],
    }
    fill_in(result)
    assert result == {
        "failed": [
            [4, {"chain": ["a.A: 1", "b.B"], "stack": "a.A: 1\n\tat a\nCaused by: b.B\n\tat b\n\t... 1 more\n"}],
            {"chain": ["a.A: 2"], "stack": "a.A: 2\n\tat a\n"},
        ]
    }


def test_failure_with_its_whole_text_and_reply_without_failures_stay():
    result = {"errant": [["t", 0, 1, {"chain": ["a.A"], "stack": "whole"}]], "errant_traces": [], "rows": 1}
    fill_in(result)
    assert result == {"errant": [["t", 0, 1, {"chain": ["a.A"], "stack": "whole"}]], "rows": 1}
