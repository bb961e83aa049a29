"""Which worker gets which connector."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.control.worker.assignment import TOLERANCE, balanced, placed
from tests.support.session.searching import examples

WORKERS = [f"w{n}:8083" for n in range(6)]
CONNECTORS = [f"c{n}" for n in range(40)]
some_workers = st.sets(st.sampled_from(WORKERS), min_size=1)
some_costs = st.dictionaries(st.sampled_from(CONNECTORS), st.floats(0, 3600) | st.just(1.0), max_size=len(CONNECTORS))
some_owners = st.dictionaries(st.sampled_from(CONNECTORS), st.sampled_from(WORKERS))


def loads(alive: set[str], cost: dict[str, float], found: dict[str, str]) -> dict[str, float]:
    return {worker: sum(cost[name] for name, owner in found.items() if owner == worker) for worker in alive}


def moved(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name, owner in before.items() if name in after and after[name] != owner}


@settings(max_examples=examples(300))
@given(some_workers, some_costs, some_owners)
def test_every_connector_has_one_live_worker_and_those_of_live_workers_stay_where_they_are(alive, cost, before):
    after = placed(alive, cost, before)
    assert after.keys() == cost.keys() and set(after.values()) <= alive
    assert {before[name] for name in moved(before, after)}.isdisjoint(alive)


@settings(max_examples=examples(300))
@given(some_workers, some_costs, some_owners)
def test_no_single_move_would_improve_a_balanced_assignment(alive, cost, before):
    after = balanced(alive, cost, before)
    assert after.keys() == cost.keys() and set(after.values()) <= alive
    load = loads(alive, cost, after)
    most, least = max(load.values()), min(load.values())
    heaviest = [name for name, owner in after.items() if load[owner] == most]
    is_tolerated = most - least <= TOLERANCE * sum(cost.values()) / len(alive) + 1e-6
    assert is_tolerated or all(cost[name] == 0 or cost[name] >= most - least - 1e-6 for name in heaviest)


@settings(max_examples=examples(300))
@given(some_workers, some_costs, some_owners)
def test_what_is_balanced_stays_as_it_is(alive, cost, before):
    once = balanced(alive, cost, before)
    assert balanced(alive, cost, once) == once


@settings(max_examples=examples(100))
@given(st.integers(1, 5), st.integers(1, 40))
def test_a_worker_that_joins_gets_its_share_and_nothing_else_moves(workers, connectors):
    cost = dict.fromkeys(CONNECTORS[:connectors], 1.0)
    before = balanced(set(WORKERS[:workers]), cost, {})
    after = balanced(set(WORKERS[: workers + 1]), cost, before)
    changed = moved(before, after)
    assert {after[name] for name in changed} <= {WORKERS[workers]}
    assert len(changed) <= -(-connectors // (workers + 1))


@settings(max_examples=examples(100))
@given(st.integers(2, 6), st.integers(1, 40))
def test_only_the_connectors_of_a_worker_that_leaves_move(workers, connectors):
    cost = dict.fromkeys(CONNECTORS[:connectors], 1.0)
    before = balanced(set(WORKERS[:workers]), cost, {})
    after = balanced(set(WORKERS[1:workers]), cost, before)
    assert moved(before, after) == {name for name, owner in before.items() if owner == WORKERS[0]}


def test_an_expensive_connector_is_alone_with_a_worker():
    cost = {"large": 100.0, **dict.fromkeys(CONNECTORS[:10], 1.0)}
    found = balanced({"a", "b"}, cost, dict.fromkeys(cost, "a"))
    assert len({name for name, owner in found.items() if owner == found["large"]}) == 1
