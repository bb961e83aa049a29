"""What all brokers say of a group, while one of them still loads its groups."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_connect.errors import AccessError
from airflow_connect.kafka.admin.worker_group import described

LOADING = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
FOUND = SimpleNamespace(error=None, members=["a member"])


class ScriptedAdmin:
    """Gives one answer after the other."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def list_groups(self, group: str, timeout: float) -> Any:
        assert (group, timeout > 0) == ("workers", True)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    "loading", [KafkaException(LOADING), [SimpleNamespace(error=LOADING, members=[])]], ids=["request", "group"]
)
def test_broker_that_loads_its_groups_is_asked_again(loading: Any) -> None:
    admin: Any = ScriptedAdmin(loading, loading, [FOUND])
    assert described(admin, "workers", "looking for members") == [FOUND]
    assert admin.answers == []


def test_refused_group_is_not_taken_for_one_without_members() -> None:
    refused = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
    admin: Any = ScriptedAdmin([SimpleNamespace(error=refused, members=[])])
    with pytest.raises(AccessError, match="looking for members"):
        described(admin, "workers", "looking for members")
