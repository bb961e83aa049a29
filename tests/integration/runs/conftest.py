"""Fixtures of tests that run connectors in this process."""

import pytest

from tests.support.steps import Steps


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Actions at the named steps of the runs of this test."""
    return Steps(monkeypatch)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder need the servers."""
    for item in items:
        if "tests/integration/runs" in str(item.path):
            item.add_marker(pytest.mark.integration)
