"""Taking over from Confluent's S3 sink whose worker was killed between uploads and the commit of offsets.

It leaves objects under the names that our first run gives its own: both begin at the committed offset.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.entry import plan_connector
from tests.support.copies.s3 import Sink, numbered
from tests.support.steps import Crashed

PAGE = Path(__file__).parents[5] / "docs/how-to/migrate-from-confluent-s3.md"
REPLACE = {"behavior_on_foreign_objects": "replace"}
EVERYTHING = numbered(0, 10)[1]

Killed = Callable[..., Sink]


@pytest.fixture
def killed(make_topic, produce, make_sink) -> Killed:
    """Ten records; the worker wrote the objects that begin at `starts`, up to four records each."""

    def make(*starts: int, committed: int = 0, **config: str) -> Sink:
        topic = make_topic()
        produce(topic, numbered(0, 10)[0])
        sink = make_sink(topic, **{"flush_size": "4", **config})
        for start in starts:
            # Jackson writes the same records with other bytes.
            lines = "".join(f'{{"n":{n} }}\n' for n in range(start, min(start + 4, 10)))
            sink.s3.client().put_object(Bucket=sink.bucket, Key=key(sink, start), Body=lines.encode())
        plan_connector(sink.spec())  # Waits for the coordinator of a broker that has just started.
        sink.set_offsets({0: committed})
        return sink

    return make


def key(sink: Sink, start: int) -> str:
    return f"topics/{sink.topic}/partition=0/{sink.topic}+0+{start:010d}.json"


def test_foreign_objects_fail_the_run_until_the_setting_replaces_them(killed: Killed) -> None:
    sink = killed(0, 4)
    before = sink.identities()

    refused = sink.try_run()
    stand = sink.identities()
    report = sink.run(**REPLACE)

    assert refused.error is not None and refused.error["code"] == "publish.conflict"
    assert "run once with behavior.on.foreign.objects=replace" in refused.error["suggestion"]
    assert {name: stand[name] for name in before} == before
    sink.assert_exactly_once(EVERYTHING)
    # The refused run left its manifest, and this one published it: it had nothing to copy itself.
    assert (report.status, sink.offsets()) == ("empty", {0: 10})
    assert any("Objects of another program were replaced" in warning for warning in sink.warnings())
    assert sink.run().status == "empty"


def test_replacing_says_in_the_report_what_was_replaced(killed: Killed) -> None:
    sink = killed(0, 4)
    report = sink.run(**REPLACE)
    [note] = report.notes
    assert note == (
        "Objects of another program were replaced (behavior.on.foreign.objects=replace): "
        f"(2) {key(sink, 0)}, {key(sink, 4)}."
    )
    sink.assert_exactly_once(EVERYTHING)


CRASHES = [
    (crash_points.MANIFEST_WRITTEN, 0),
    *((crash_points.PUBLISHING, n) for n in (0, 1, 2)),
    (crash_points.PUBLISHED, 0),
]


@pytest.mark.parametrize(("point", "skip"), CRASHES)
def test_crash_while_replacing_is_rolled_forward(killed: Killed, steps, point: str, skip: int) -> None:
    sink = killed(0, 4)
    steps.crash(point, skip)
    with pytest.raises(Crashed):
        sink.try_run(**REPLACE)
    visible = {name: seen for name, seen in sink.identities().items() if sink.body(name).startswith(b'{"n":0}')}

    report = sink.run(**REPLACE)

    assert report.recovered_run_id
    assert visible.items() <= sink.identities().items()  # What was published is not written again.
    sink.assert_exactly_once(EVERYTHING)
    assert sink.offsets() == {0: 10}


def test_files_that_end_elsewhere_leave_objects_that_the_report_names(killed: Killed) -> None:
    sink = killed(0, 4, flush_size="6")

    report = sink.run(**REPLACE)

    replaced, overlapping = report.notes
    assert f"were replaced (behavior.on.foreign.objects=replace): (1) {key(sink, 0)}." in replaced
    assert f"begin at offsets that published objects also hold: (1) {key(sink, 4)}." in overlapping
    sink.s3.client().delete_object(Bucket=sink.bucket, Key=key(sink, 4))
    sink.assert_exactly_once(EVERYTHING)


def test_objects_before_the_committed_offset_are_none_of_the_runs_business(killed: Killed) -> None:
    sink = killed(0, 4, committed=4)
    report = sink.run(**REPLACE)
    [note] = [note for note in report.notes if "foreign" in note]
    assert f"(1) {key(sink, 4)}." in note
    assert sink.body(key(sink, 0)).startswith(b'{"n":0 }')
    assert sorted(value["n"] for value in sink.values()) == list(range(10))


def test_how_to_page_shows_what_a_run_does(killed: Killed) -> None:
    """The trees and the configuration of the page."""
    text = PAGE.read_text("utf-8")
    trees = [tree.splitlines() for tree in re.findall(r"<!-- (?:tree|after) -->\n *```\n(.*?)```", text, re.DOTALL)]
    [setting] = [json.loads(found) for found in re.findall(r"```json\n(.*?)```", text, re.DOTALL) if "foreign" in found]
    sink = killed(4, 8, committed=4)
    shown = [[line.split()[0].replace("orders", sink.topic) for line in tree] for tree in trees]
    client = sink.s3.client()
    client.put_object(Bucket=sink.bucket, Key=shown[0][0], Body=b'{"n":0 }\n{"n":1 }\n{"n":2 }\n{"n":3 }\n')
    assert sink.keys() == shown[0]

    refused = sink.try_run()
    sink.config.update(setting)
    sink.run()

    assert refused.error is not None
    message = refused.error["message"].replace(sink.topic, "orders").replace(sink.bucket, "my-bucket")
    assert message.partition(" (")[0] in text.replace("\n", " ")
    assert sink.keys() == shown[1]
    assert sorted(value["n"] for value in sink.values()) == list(range(10))
