"""An index whose documents get other ids, or versions of another kind, because the configuration was changed."""

from __future__ import annotations

import json

import pytest

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.sink_state import CopiedRun, PlannedRun
from airflow_connect.connectors.search import known
from airflow_connect.documents.run import PartitionReport
from tests.support.copies.search_sink import SearchSink, documents, search_sink

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
HEADER = {"external.version.header": "revision"}
CHANGED = "was changed."


def of_forms(report) -> list[str]:
    return [note for note in report.notes if CHANGED in note]


@pytest.fixture
def sink(kafka, opensearch, make_topic) -> SearchSink:
    sink = search_sink(kafka, opensearch, make_topic(), key_ignore="false")
    sink.config |= {"key.converter": STRINGS}
    return sink


@pytest.mark.integration
@pytest.mark.parametrize("end", ["", "ü"], ids=["in columns", "record by record"])
def test_records_that_offsets_of_earlier_runs_refuse_are_named(sink, opensearch, produce, end):
    """Set for an index whose versions were offsets, the header had no newer record written; all counted as written."""
    names = [f"k{n}{end}" for n in range(90)]
    produce(sink.topic, [(0, name, json.dumps({"v": "old"})) for name in names])
    sink.run()
    sink.config |= HEADER
    newer = [(0, name, json.dumps({"v": "new"}), 1, [("revision", b"3")]) for name in names[10:]]
    produce(sink.topic, newer)

    report = sink.run()

    assert {value["v"] for value in sink.documents().values()} == {"old"}
    assert (report.records, report.filtered) == (0, 80)
    (note,) = of_forms(report)
    assert note.startswith(
        f"{sink.bucket} has documents of earlier runs with keys as ids, and offsets as versions; this"
    )
    assert "the header revision as versions" in note and "may refuse newer records" in note
    (refused,) = [note for note in report.notes if "NOT written" in note]
    assert refused.startswith(f"80 records were NOT written to {sink.bucket}, and counted as filtered")
    assert "of several kinds, because external.version.header or write.method was changed" in refused
    produce(sink.topic, newer[:1])
    again = sink.run()  # The change is named once, and what it does in each run.
    assert of_forms(again) == [] and (again.records, again.filtered) == (0, 1)
    opensearch.request("DELETE", f"/{sink.bucket}")
    assert opensearch.request("PUT", f"/{sink.bucket}", {"settings": {"number_of_replicas": 0}})[0] == 200
    produce(sink.topic, newer[:2])
    cured = sink.run()
    assert of_forms(cured) == [] and (cured.records, cured.filtered) == (2, 0)


@pytest.mark.integration
def test_changed_ids_are_named_once(sink, produce):
    produce(sink.topic, [(0, f"k{n}", '{"v": 1}') for n in range(5)])
    assert of_forms(sink.run()) == []
    produce(sink.topic, [(0, "k0", '{"v": 2}')])
    (note,) = of_forms(sink.run(key_ignore="true"))
    assert "this run has written some with ids of topic, partition and offset: key.ignore" in note
    assert "is a second document" in note and "do not compare" not in note
    produce(sink.topic, [(0, "k0", '{"v": 3}')])
    assert of_forms(sink.run(key_ignore="true")) == []


@pytest.mark.integration
def test_target_that_was_changed_in_the_middle_of_a_topic_is_named(sink, opensearch, produce):
    produce(sink.topic, [(0, f"k{n}", '{"v": 1}') for n in range(5)])
    sink.run()
    other = f"{sink.bucket}-v2"
    assert opensearch.request("PUT", f"/{other}", {"settings": {"number_of_replicas": 0}})[0] == 200
    sink.config["topic.to.external.resource.mapping"] = f"{sink.topic}:{other}"
    produce(sink.topic, [(0, "k0", '{"v": 2}')])
    (note,) = [note for note in sink.run().notes if note.startswith(f"The records of {sink.topic} go to {other} now")]
    assert f"and went to {sink.bucket} before. This run writes {sink.topic}-0 from offset 5 on" in note
    produce(sink.topic, [(0, "k0", '{"v": 3}')])
    assert not [note for note in sink.run().notes if note.startswith("The records of")]
    assert len(documents(opensearch, other)) == 1


@pytest.mark.integration
def test_new_index_of_each_day_is_no_lost_one(sink, opensearch, produce):
    """Each of them was said to be missing, maybe deleted."""
    transforms = "org.apache.kafka.connect.transforms."
    sink.config |= {
        "external.resource.usage": "disabled", "transforms": "day", "transforms.day.type": f"{transforms}RegexRouter",
        "transforms.day.regex": ".*", "topic.to.external.resource.mapping": None,
    }  # fmt: skip
    named = []
    for day in range(4):
        produce(sink.topic, [(0, f"k{day}", '{"v": 1}')])
        report = sink.run(transforms_day_replacement=f"{sink.topic}-{day}")
        named.append(any("was missing and was created" in note for note in report.notes))
    assert named == [False, True, False, False]  # The second is the first of which there are not two before.
    assert opensearch.request("DELETE", f"/{sink.topic}-3")[0] == 200
    produce(sink.topic, [(0, "k9", '{"v": 1}')])
    report = sink.run(transforms_day_replacement=f"{sink.topic}-3")
    assert any("was missing and was created" in note for note in report.notes)


def test_targets_that_are_kept_have_a_limit():
    names = [f"t-{n:04}" for n in range(known.MOST_TARGETS + 20)]
    members = {name: {"topics": ["t"], "forms": ["none"]} for name in names}
    reports = [
        PartitionReport(
            OffsetRange("t", 0, 0, 1), 1, 1, 1, 1, details={known.FORMS: {"a-new": ["none"], names[0]: ["none"]}}
        )
    ]
    run = CopiedRun(PlannedRun(kept={"v": 1, "known": members}), reports=reports)
    kept, notes = known.state_after(run)
    found = known.bounded({"v": 1, "indices": dict.fromkeys(names, "id"), **kept}, run)
    assert notes == [] and len(found["known"]) == known.MOST_TARGETS
    assert list(found["known"])[:2] == ["a-new", names[0]] and names[-1] in found["indices"]
    assert known.known_targets(found)["a-new"].topics == {"t"}
    assert known.known_targets({"v": 2, "known": members}) == {}
