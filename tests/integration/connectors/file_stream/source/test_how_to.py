"""docs/how-to/import-log-files.md: its configuration is the one in dags/, and does what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from airflow_connect.testing.topics import Topics
from tests.integration.connectors.file_stream.source.conftest import MakeLines

ROOT = Path(__file__).parents[5]
PAGE = (ROOT / "docs" / "how-to" / "import-log-files.md").read_text("utf-8")


def block(info: str) -> str:
    (found,) = re.findall(rf"^ *```{info}\n(.*?)^ *```$", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def test_page_has_the_configuration_of_the_dags_folder() -> None:
    assert json.loads(block("json access-log")) == json.loads((ROOT / "dags" / "access-log.json").read_text())


@pytest.mark.integration
def test_page_imports_a_log_through_a_rotation(make_lines: MakeLines, tmp_path: Path) -> None:
    line = block("text access-log")
    config = json.loads(block("json access-log"))
    log = tmp_path / "access.log"
    source = make_lines()
    dead = f"{source.topic}-unreadable"
    source.config = {
        **config,
        "name": source.name,
        "topic": source.topic,
        "files": f"{tmp_path}/access.log*",
        "dead.letter.topic": dead,
    }
    del source.config["connector.class"]
    log.write_text(line * 3 + "not a line of that kind\n")
    assert source.run().records == 4
    with log.open("a") as out:
        out.write(line)
    log.rename(tmp_path / "access.log.1")
    log.write_text(line * 2)
    assert source.run().records == 3
    assert source.documents() == [json.loads(block("json record"))] * 6
    assert [json.loads(message.value() or b"null") for message in Topics(source.bootstrap).read(dead)] == [
        "not a line of that kind"
    ]


def test_dag_imports_the_file_of_the_page() -> None:
    source = (ROOT / "dags" / "log_import.py").read_text()
    assert "access-log.json" in source and compile(source, "log_import.py", "exec") is not None
