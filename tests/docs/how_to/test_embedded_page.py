"""docs/embedded.md: its programs run as they are, with a broker and files of the test."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT

pytestmark = pytest.mark.integration

PAGE = (ROOT / "docs" / "embedded.md").read_text("utf-8")


def program(name: str) -> str:
    """A program of the page."""
    found = re.search(rf"<!-- runs: {name} -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.budget(20)  # a Spark session
@pytest.mark.usefixtures("spark_classes")
def test_application_of_the_page_counts_words(kafka, unique_name, make_topic, tmp_path: Path, capsys):
    topic = make_topic()
    (tmp_path / "lines.txt").write_text("to be or not to be\nthat is to ask\n")
    text = program("application").replace("broker:9092", kafka.bootstrap).replace("/data/", f"{tmp_path}/")
    text = text.replace("word-count", unique_name).replace('"topic": "lines"', f'"topic": "{topic}"')
    exec(compile(text.replace('read("lines")', f'read("{topic}")'), "embedded.md", "exec"), {})
    assert capsys.readouterr().out == "PAUSED [('to', 3)]\n"


def test_test_of_the_page_passes(kafka, make_topic, produce, tmp_path: Path):
    topic = make_topic()
    produce(topic, [(0, None, json.dumps({"order": n})) for n in range(2)])
    names: dict[str, Any] = {}
    exec(compile(program("test"), "embedded.md", "exec"), names)
    names["test_orders_arrive_as_files"](kafka.bootstrap, topic, tmp_path)
    (file,) = tmp_path.rglob("*.json")
    assert file.read_text() == '{"order":0}\n{"order":1}\n'
