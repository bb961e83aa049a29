"""Stack traces that records of a reply share."""

from __future__ import annotations

from airflow_connect.jvm.stack_traces import fill_in, hide


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


def test_secrets_are_hidden_in_all_texts_about_records():
    failure = {
        "class": "a.A",
        "message": "key s3cret",
        "chain": ["a.A: key s3cret"],
        "stack": "a.A: key s3cret\n\tat a",
    }
    result = {
        "failed": [dict(failure, where="topic t, offset s3cret")],
        "errant": [["t", 0, 1, dict(failure)]],
        "retry": {"after_ms": 1, "message": "busy s3cret"},
    }

    hide(result, lambda text: text.replace("s3cret", "[hidden]"))

    hidden = {
        "class": "a.A",
        "message": "key [hidden]",
        "chain": ["a.A: key [hidden]"],
        "stack": "a.A: key [hidden]\n\tat a",
    }
    assert result == {
        "failed": [hidden | {"where": "topic t, offset [hidden]"}],
        "errant": [["t", 0, 1, hidden]],
        "retry": {"after_ms": 1, "message": "busy [hidden]"},
    }


def test_replies_without_records_stay():
    result = {"failed": "get", "retry": None}
    hide(result, str.upper)
    assert result == {"failed": "get", "retry": None}
