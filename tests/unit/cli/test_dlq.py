"""Arguments of `airflow-connect dlq`, and what it says without a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.cli.main import build_parser


@pytest.mark.parametrize(
    "options",
    [
        ["dlq"],
        ["dlq", "show"],
        ["dlq", "show", "w", "c", "--limit", "0"],
        ["dlq", "show", "w", "c", "--limit", "many"],
        ["dlq", "show", "w", "c", "--since", "yesterday"],
        ["dlq", "replay", "w", "c", "--to"],
        ["dlq", "discard", "w", "c"],
    ],
)
def test_wrong_arguments_end_with_2(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args(options)

    assert ended.value.code == 2
    assert "usage: airflow-connect dlq" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["show", "replay"])
@pytest.mark.parametrize("before", [True, False])
def test_json_and_verbose_may_stand_before_and_behind_the_action(action: str, before: bool) -> None:
    words = ["dlq", "--json", "-v", action, "w", "c"] if before else ["dlq", action, "w", "c", "--json", "-v"]

    arguments = build_parser().parse_args(words)

    assert (arguments.json, arguments.verbose) == (True, True)
    assert (arguments.stage, arguments.error, arguments.since) == ("", "", None)
    plain = build_parser().parse_args(["dlq", action, "w", "c"])
    assert (plain.json, plain.verbose) == (False, False)


def test_connector_that_is_wrong_is_named_and_the_exit_code_is_2(
    cli: Callable[..., Any], worker: Path, connector: Callable[..., Path]
) -> None:
    done = cli("dlq", "replay", worker, connector("orders", topics="t"), "--json")

    assert done.exit_code == 2
    assert done.envelope["ok"] is False
    assert done.envelope["summary"] == "0 dead letters replayed, 1 connector failed."
    assert done.envelope["error"]["configPath"] == "connector.class"
    assert done.envelope["error"]["message"].startswith("orders: ")
