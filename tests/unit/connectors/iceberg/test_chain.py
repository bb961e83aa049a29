"""The property of a table that says which runs have been published there."""

from __future__ import annotations

import pytest

from airflow_connect.api.publishing import SWEEPS
from airflow_connect.connectors.iceberg.chain import RUNS_KEPT, Chain, property_name, snapshot_id
from airflow_connect.errors import StateError


def test_newest_run_comes_first_and_old_ones_leave() -> None:
    name, properties = property_name("c", "main"), {}
    for number in range(RUNS_KEPT + 3):
        properties = {name: Chain.of(properties, "c", "main").after(f"run-{number}")}
    found = Chain.of(properties, "c", "main")
    assert found.last == f"run-{RUNS_KEPT + 2}"
    assert found.runs == tuple(f"run-{number}" for number in range(RUNS_KEPT + 2, 2, -1))


def test_connectors_and_branches_have_chains_of_their_own() -> None:
    names = {property_name(connector, branch) for connector in ("c", "d") for branch in ("main", "audit")}
    assert len(names) == 4
    properties = {property_name("c", "main"): Chain().after("run-1")}
    assert Chain.of(properties, "c", "audit") == Chain.of(properties, "d", "main") == Chain()
    assert Chain().last == ""


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"runs":5}', '{"runs":[1]}', '{"run":["a"]}'])
def test_property_of_somebody_else_is_an_error_that_names_it(text: str) -> None:
    with pytest.raises(StateError, match=r"airflow-connect\.c\.main\.published"):
        Chain.of({property_name("c", "main"): text}, "c", "main")


def test_ids_of_snapshots_are_positive_different_and_the_same_for_each_attempt() -> None:
    parts = [(run, table, branch) for run in ("r1", "r2") for table in ("t1", "t2") for branch in ("main", "b")]
    found = [snapshot_id(*part) for part in parts]
    assert len(set(found)) == len(parts) and all(0 < number < 2**63 for number in found)
    assert found == [snapshot_id(*part) for part in parts]


def test_chain_outlives_every_sweep() -> None:
    """A sweep of a run whose snapshot has expired knows from the chain that its manifest is in use."""
    assert RUNS_KEPT > 2 * SWEEPS
