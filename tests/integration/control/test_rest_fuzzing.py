"""Requests that schemathesis makes from the description of the REST API: every answer is one that it describes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.servers.rest import RestServer, worker_of
from tests.support.session.searching import examples

pytestmark = [pytest.mark.integration, pytest.mark.soak]

EXISTING = "fuzzed"
SOURCE = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "lines"}
ASKS_WITHIN_S = 20


@pytest.fixture(scope="module")
def server(kafka) -> Iterator[RestServer]:
    with RestServer(worker_of(kafka.bootstrap, f"t-{uuid.uuid4().hex[:12]}")) as server:
        yield server


def places(operation: Any) -> st.SearchStrategy[dict[str, Any] | None]:
    """Path parameters: what exists, or whatever schemathesis finds (None)."""
    there = {"connector": EXISTING, "task": 0, "plugin": "FileStreamSource", "logger": "kafka"}
    named = {entry.name: there[entry.name] for entry in operation.path_parameters}
    return st.sampled_from([None, named]) if named else st.none()


def search(server: RestServer, operation: Any) -> None:
    """Send requests of one operation, and check their answers."""
    import schemathesis
    from schemathesis import checks

    base = "http://{}:{}".format(*server.address)
    modes = st.sampled_from(list(schemathesis.GenerationMode))
    wanted = [
        checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]

    @settings(max_examples=examples(5))
    @given(st.data())
    def probe(data: st.DataObject) -> None:
        path = data.draw(places(operation))
        case = data.draw(operation.as_strategy(data.draw(modes), path_parameters=path))
        case.validate_response(case.call(base_url=base, timeout=ASKS_WITHIN_S), checks=wanted)

    server.send("PUT", f"/connectors/{EXISTING}/config", SOURCE)
    probe()


@pytest.mark.budget(60)  # Hundreds of requests, a part of which change topics.
def test_every_answer_is_described_and_none_is_a_failure_of_the_server(server: RestServer):
    import schemathesis

    schema = schemathesis.openapi.from_dict(server.send("GET", "/openapi.json").body)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 25
    for operation in operations:
        search(server, operation)
