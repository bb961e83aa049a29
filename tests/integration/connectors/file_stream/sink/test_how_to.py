"""docs/how-to/try-without-a-server.md, command by command, through the command line, Spark and a real broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.docs.pages import blocks
from tests.support.kafka_data import TopicProducer
from tests.support.processes.drivers import without_spark_env

pytestmark = [pytest.mark.integration, pytest.mark.budget(30)]  # a whole page of commands

PAGE = "docs/how-to/try-without-a-server.md"
RECORDS, IN_BERLIN = 300, 100


@pytest.fixture
def shell(kafka: KafkaBroker, make_topic: Callable[..., str], produce: TopicProducer, tmp_path: Path) -> Any:
    """Run a block of the page with a broker, a topic and a directory of this test."""
    topic = make_topic(2)
    cities = ("Berlin", "Paris", "Rome")
    values = [json.dumps({"id": n, "city": cities[n % 3]}).encode() for n in range(RECORDS)]
    produce(topic, [(n % 2, None, value, 1_763_700_000_000, []) for n, value in enumerate(values)])

    def here(text: str) -> str:
        text = text.replace("localhost:9092", kafka.bootstrap).replace("/tmp/orders", f"{tmp_path}/orders")
        return text.replace('"topics": "orders"', f'"topics": "{topic}"').replace("orders-to-", f"{topic}-to-")

    (worker,) = [block.text for block in blocks("properties") if block.page == PAGE]
    (tmp_path / "worker.properties").write_text(here(worker))
    for block in blocks("json"):
        if block.page == PAGE:
            text = here(block.text)
            (tmp_path / f"{json.loads(text)['name']}.json").write_text(text)

    def run(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        command, env = ["bash", "-ec", here(text)], {**os.environ, "PATH": path, **environment}
        done = subprocess.run(  # noqa: PLW1510 (its output is looked at first)
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


def test_the_page_does_what_it_says(shell: Any, tmp_path: Path) -> None:
    plan, copy, again, lines, one_file = [block.text for block in blocks("sh") if block.page == PAGE]

    assert f"{RECORDS} records" in shell(plan).stdout
    assert not (tmp_path / "orders").exists()

    copied = shell(copy).stdout.split("\n")
    files = [line for line in copied if line.endswith(".json")]
    assert copied[-2] == str(RECORDS)
    assert [name.rpartition("+0000000000+")[2] for name in files] == ["0000000149.json"] * 2
    assert not (tmp_path / "orders/topics/+tmp").exists()

    assert shell(again).stdout.split("\n")[-2] == str(RECORDS)

    found = shell(lines)
    assert found.stdout == f"{IN_BERLIN}\n"
    assert f"{RECORDS} records" in found.stderr  # The report, and the note about delivery, are not among the lines.
    assert "delivers at least once" in found.stderr

    # The connector of the block before, which had Spark.
    assert shell(one_file, **without_spark_env()).stdout.split("\n")[-2] == str(RECORDS)
    first = (tmp_path / "orders.txt").read_text().split("\n")[:2]
    assert first == ["{id=0, city=Berlin}", "{id=2, city=Rome}"]
