"""Recorded exchanges with the REST API of Kafka Connect 4.3.1, replayed against ours.

tests/data/connect_rest.jsonl has every recorded exchange, except descriptions of Kafka Connect's own plugins and the
results of validating their configurations, which show other keys. No worker runs the connectors.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.rest import RestServer, worker_of

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
RECORDED = [json.loads(line) for line in (ROOT / "tests/data/connect_rest.jsonl").read_text("utf-8").splitlines()]
PROVIDERS = {
    "config.providers": "file,env,dir",
    **{
        f"config.providers.{name}.class": f"org.apache.kafka.common.config.provider.{kind}ConfigProvider"
        for name, kind in (("file", "File"), ("env", "EnvVar"), ("dir", "Directory"))
    },
}
TOPIC = "t-lines"

PLACE = {"kafka_topic": TOPIC, "kafka_partition": 0}
STEPS: dict[int, list[tuple[str, str, Any]]] = {
    # Exchanges that the recording lacks, and what a worker would have done.
    582: [("PUT", "/connectors/fs1/resume", None)],
    833: [("PATCH", "/connectors/snk1/offsets", [{"partition": PLACE, "offset": {"kafka_offset": 10}}])],
}

DIFFERENCES: dict[str, set[int]] = {
    "a body that is not JSON, or has another form, is answered with 400": {
        *range(155, 161),
        163,
        164,
        *range(303, 311),
        313,
        314,
        315,
        331,
        *range(334, 343),
        344,
        345,
        346,
        394,
        395,
        396,
        400,
        404,
        591,
        592,
        607,
        608,
        609,
        617,
    },
    "a path that cannot be read is answered in JSON": {13, 47, 402, 403},
    "a validation error is answered with 400": {146, 149, 153, 249, 261, 374},
    "client settings are checked with the configuration": {243, 280, 283, 284, 368, 372, 383},
    "what a run would refuse is refused when it is registered": {323, 361, 364, 365, 373, 405, 406},
    "errors say what to do": {333, 354, 355, 359, 360, 367, 371, 377, 382},
    "an unknown connector class is answered with the names of known ones": {
        385,
        386,
        387,
        388,
        389,
        390,
        391,
        392,
        370,
    },
    "every source is delivered exactly once": {366},
    "plugins of both nested classes are found by their aliases": {
        101,
        102,
        105,
        106,
        110,
        111,
        112,
        116,
        117,
        118,
        119,
    },
    "a class that is not a plugin is unknown": {132, 133},
    "`version` of a plugin is not read": {137, 139},
    "a task of a stopped connector is unknown": {493},
    "the name of a connector cannot be changed by PATCH": {611, 613, 615, 616, 619},
    "offsets that cannot be used are refused with 400 and the reason": {854, 860, 864, 866, 874, 882, 883},
}
NEEDS_A_RUN = {433, 434, 438, 494, 495, 813, 814, 898, 904, 1187}
"""Offsets and topics that a run leaves: test_worker.py."""
NOT_RECORDED_HERE = {1183, 1193}
"""Connectors of a group of exchanges that was not kept: names that Kafka Connect can create but not delete."""


class Replay:
    def __init__(self, server: RestServer, topic: str, group: str, bootstrap: str) -> None:
        self._server, self._base = server, "http://{}:{}".format(*server.address)
        self._names = {TOPIC: topic, "oracle-connect": group, "{{BOOTSTRAP}}": bootstrap}

    def difference(self, exchange: dict[str, Any]) -> str:
        target = exchange["path"] + (f"?{exchange['query']}" if exchange.get("query") else "")
        body = exchange.get("body")
        body = None if body is None else self._ours(body)
        for method, path, offsets in STEPS.get(exchange["id"], []):
            step = None if offsets is None else self._ours(json.dumps({"offsets": offsets}))
            assert self._server.send(method, path, step).status < 300
        answer = self._server.send(exchange["method"], target, body, exchange.get("headers"))
        if answer.status != exchange["status"]:
            return f"{exchange['status']} != {answer.status} {answer.body}"
        for header in ("location", "allow"):
            if header in exchange and self._masked(answer.headers.get(header)) != exchange[header]:
                return f"{header}: {exchange[header]} != {answer.headers.get(header)}"
        if exchange.get("compare") == "status":
            return ""
        ours = self._masked(answer.body, exchange["path"])
        return "" if ours == exchange["response"] else f"{exchange['response']} != {ours}"

    def _masked(self, value: Any, path: str = "", key: str = "") -> Any:
        if isinstance(value, dict):
            return {self._text(name): self._masked(entry, path, name) for name, entry in value.items()}
        if isinstance(value, list):
            found = [self._masked(entry, path) for entry in value]
            is_set = key in ("topics", "offsets") or (not key and path == "/connectors")
            return sorted(found, key=lambda entry: json.dumps(entry, sort_keys=True)) if is_set else found
        if key in ("worker_id", "trace", "commit", "kafka_cluster_id") and value is not None:
            return f"<{key}>"
        if key == "version" and isinstance(value, str) and re.match(r"\d+\.\d+", value):
            return "<version>"
        if key == "last_modified" and isinstance(value, int):
            return "<ms>"
        if key == "" and isinstance(value, str) and "," in value:
            value = ",".join(sorted(value.split(",")))
        return self._text(value) if isinstance(value, str) else value

    def _ours(self, text: str) -> str:
        for recorded, ours in self._names.items():
            text = text.replace(recorded, ours)
        return text

    def _text(self, text: str) -> str:
        text = text.replace(self._base, "<base>")
        for recorded, ours in self._names.items():
            text = text.replace(ours, recorded)
        return text


@pytest.fixture
def replay(kafka, unique_name, make_topic, produce, monkeypatch, tmp_path):
    monkeypatch.setenv("ORACLE_SECRET", "s3cr3t")
    monkeypatch.chdir(tmp_path)
    topic = make_topic()
    produce(topic, [(0, None, b"line", 0, []) for _ in range(10)])
    worker = {**worker_of(kafka.bootstrap, unique_name), **PROVIDERS}
    with RestServer(worker) as server:
        yield Replay(server, topic, unique_name, kafka.bootstrap)


@pytest.mark.budget(60)  # Five hundred requests, a hundred of which change a topic.
def test_every_recorded_exchange_has_the_same_answer_or_a_listed_difference(replay):
    found = {exchange["id"]: difference for exchange in RECORDED if (difference := replay.difference(exchange))}
    listed = set().union(*DIFFERENCES.values(), NEEDS_A_RUN, NOT_RECORDED_HERE)
    assert {number: text for number, text in found.items() if number not in listed} == {}
    assert listed - found.keys() == set()


def test_every_difference_is_on_the_page():
    page = (ROOT / "docs" / "compatibility.md").read_text("utf-8")
    assert {difference for difference in DIFFERENCES if f"| {difference} |" not in page} == set()
