"""What a run says if documents go elsewhere than before, or if their ids or versions are of another kind."""

from __future__ import annotations

from typing import Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.sink_state import CopiedRun, PlannedRun
from airflow_connect.connectors.search import routes
from airflow_connect.documents.run import PartitionReport

BASE = {
    "name": "n",
    "connector.class": "ElasticsearchSinkConnector",
    "topics": "t",
    "connection.url": "http://search:9200",
    "key.ignore": "false",
}
KEY = "record.key"
OFFSETS, HEADER, UPSERTS = f"{KEY}+offsets", f"{KEY}+header:revision", f"{KEY}+upserts"
BY_OFFSET = "topic.partition.offset"


def after(kept: dict[str, Any], *written: tuple[str, ...], start: int = 10, **details: Any) -> routes.RoutesAfter:
    """A run that has written [topic after transformations, target, form]."""
    config = {**BASE, **details.pop("config", {})}
    found = {routes.ROUTES: [list(one) for one in written], **details}
    report = PartitionReport(OffsetRange("t", 0, start, start + 5), start + 5, start + 5, 5, 5, details=found)
    run = CopiedRun(PlannedRun(kept=kept, partitions=[TopicPartition("t", 0)]), reports=[report])
    return routes.RoutesAfter(run, config)


def test_another_form_is_named_once() -> None:
    """The server does not tell of which kind versions are: newer records were refused, and counted as written."""
    first = after({}, ("t", "i", OFFSETS))
    assert first.notes == [] and after(first.kept, ("t", "i", OFFSETS)).notes == []
    second = after(first.kept, ("t", "i", HEADER))
    (note,) = second.notes
    assert note.startswith(
        "Documents of t in i had keys as ids, and offsets as versions at the last run, and have keys"
    )
    assert "the header revision as versions now" in note and "Use another index, or delete this one" in note
    assert after(second.kept, ("t", "i", HEADER)).notes == []
    assert len(after(second.kept, ("t", "i", OFFSETS)).notes) == 1
    assert len(after(second.kept, ("t", "i", f"{KEY}+header:other")).notes) == 1
    (ids,) = after(first.kept, ("t", "i", BY_OFFSET)).notes
    assert "The documents of before keep their ids" in ids


def test_upserts_do_not_depend_on_versions_but_what_follows_them_does() -> None:
    upserted = after(after({}, ("t", "i", OFFSETS)).kept, ("t", "i", UPSERTS))
    assert upserted.notes == [] and len(after(upserted.kept, ("t", "i", OFFSETS)).notes) == 1


def test_index_that_was_created_again_has_one_form_only() -> None:
    kept = {**after({}, ("t", "i", OFFSETS)).kept, "indices": {"i": "a"}}
    assert after(kept, ("t", "i", HEADER), indices={"i": "b"}).notes == []
    assert after(kept, ("t", "i", HEADER), created=["i"]).notes == []
    assert len(after(kept, ("t", "i", HEADER), indices={"i": "a"}).notes) == 1
    state = routes.for_tasks(kept, BASE)
    assert routes.are_changed(state, ("t", "i"), HEADER, ["a"])
    assert not routes.are_changed(state, ("t", "i"), HEADER, ["b"])
    assert not routes.are_changed(state, ("t", "i"), OFFSETS, ["a"])
    assert not routes.are_changed(state, ("t", "i"), UPSERTS, ["a"])


def test_target_that_is_new_is_named_if_the_configuration_has_changed() -> None:
    kept = {**after({}, ("t", "a", BY_OFFSET)).kept, "indices": {"a": "1"}}
    changed = {"topic.to.external.resource.mapping": "t:b", "external.resource.usage": "index"}
    (note,) = after(kept, ("t", "b", BY_OFFSET), config=changed).notes
    assert note.startswith("Records of t go to b, which earlier runs have not written: they went to a.")
    assert "This run writes t-0 from offset 10 on." in note
    assert after(kept, ("t", "b", BY_OFFSET)).notes == []  # As after TimestampRouter.
    assert after(kept, ("t", "b", BY_OFFSET), config=changed, start=0).notes == []
    assert after(kept, ("t", "b", BY_OFFSET), config=changed, created=["b"]).notes == []  # It has a note of the task.
    assert after(kept, ("t", "b", BY_OFFSET), config=changed, behind={"b": {"a": "1"}}).notes == []
    assert routes.is_expected(routes.for_tasks(kept, BASE), "t", "b")
    assert not routes.is_expected(routes.for_tasks(kept, BASE), "t", "a")
    assert not routes.is_expected(routes.for_tasks(kept, {**BASE, **changed}), "t", "b")
    assert not routes.is_expected({}, "t", "b")


def test_targets_that_were_written_longest_ago_are_forgotten() -> None:
    kept: dict[str, Any] = {}
    for n in range(routes.MOST_TARGETS + 1):
        found = after(kept, ("t", f"i-{n}", BY_OFFSET), ("t", "each", BY_OFFSET))
        kept = found.kept
    assert found.forgotten == {"i-1"}
    assert len(kept[routes.ROUTES]["t"]["targets"]) == routes.MOST_TARGETS
