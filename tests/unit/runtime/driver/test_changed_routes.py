"""Which changes of transformations a source names: those after which its topics lack what was copied before."""

from __future__ import annotations

import pytest

from airflow_connect.runtime.driver.source.changed_routes import note_of_changed_routes, routes_of

CONFIG = {
    "name": "source",
    "transforms": "mask,drop,own",
    "transforms.mask.type": "MaskField$Value",
    "transforms.mask.fields": "a",
    "transforms.drop.type": "Filter",
    "transforms.drop.predicate": "isTest",
    "transforms.own.type": "com.example.Router",
    "transforms.own.token": "secret",
    "predicates": "isTest",
    "predicates.isTest.type": "TopicNameMatches",
    "predicates.isTest.pattern": "test.*",
}
SECRETS = {"transforms.own.token"}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({}, ""),
        ({"name": "other", "transforms.mask.fields": "{{ ds }}"}, ""),
        ({"transforms": "drop, own"}, ""),
        ({"transforms.drop.type": "org.apache.kafka.connect.transforms.Filter"}, ""),
        ({"transforms.own.token": "other"}, ""),
        ({"transforms.own.plugin.version": "2"}, ""),
        ({"transforms.unused.type": "Filter"}, ""),
        ({"transforms": "own,drop"}, "transforms"),
        ({"transforms": "mask,drop"}, "transforms, transforms.own.type"),
        ({"transforms.drop.negate": "true"}, "transforms.drop.negate"),
        ({"predicates.isTest.pattern": "x"}, "predicates.isTest.pattern"),
        ({"transforms.own.host": "h", "transforms.mask.type": "RegexRouter"},
         "transforms, transforms.mask.fields, transforms.mask.type, transforms.own.host"),
    ],
    ids=str,
)  # fmt: skip
def test_keys_that_were_changed_are_named(change: dict[str, str], named: str) -> None:
    before, now = routes_of(CONFIG, SECRETS), routes_of({**CONFIG, **change}, SECRETS)
    notes = note_of_changed_routes(before, now, 1)
    assert [f"since the last run ({named})." in note and "(1 source partition)" in note for note in notes] == (
        [True] if named else []
    )
    assert SECRETS.isdisjoint(now)


def test_nothing_is_said_without_offsets_or_if_the_last_run_is_unknown() -> None:
    without, routed = routes_of({"name": "source"}, ()), routes_of(CONFIG, ())
    assert without and note_of_changed_routes(without, routed, 1)
    assert not note_of_changed_routes(without, routed, 0)
    assert not note_of_changed_routes({}, routed, 1) and not note_of_changed_routes(routed, {}, 1)
