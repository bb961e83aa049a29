"""A worker as a member of its group, on a real broker."""

from __future__ import annotations

import pytest

from airflow_connect.errors import ConfigError, ConnectError, NotStoppedError, RetriableError
from airflow_connect.kafka.admin.worker_membership import Timeouts, View, WorkerMembership
from airflow_connect.kafka.clients.short_lived import Admin, admin_client, group_member
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

QUICK = Timeouts(session=2000, heartbeat=300, rebalance=10_000)


class Members:
    """Members of one group."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.settings = {"bootstrap.servers": bootstrap}
        self.admin: Admin = admin_client(self.settings)
        self._group, self._topic = group, topic
        self._members: list[WorkerMembership] = []

    def join(self, worker_id: str, timeouts: Timeouts = QUICK) -> WorkerMembership:
        member = WorkerMembership(self.settings, self._group, self._topic, worker_id)
        self._members.append(member)
        member.join(timeouts)
        return member

    def sees(self, member: WorkerMembership, *worker_ids: str) -> View:
        """What a member sees, once it sees exactly these workers."""
        views: list[View] = []

        def is_there() -> bool:
            try:
                views[:] = [member.view(self.admin)]
            except RetriableError:
                return False
            return set(views[0].tokens) == set(worker_ids)

        wait_until(is_there, f"{worker_ids} in the group")
        return views[0]

    def problem(self, member: WorkerMembership) -> ConnectError:
        """Why it is no member, once there is a reason."""
        found: list[ConnectError] = []

        def is_there() -> bool:
            with pytest.raises(ConnectError) as raised:
                member.view(self.admin)
            found[:] = [raised.value]
            return found[0].code != "worker.rebalancing"

        wait_until(is_there, "the reason")
        return found[0]

    def end(self) -> None:
        for member in self._members:
            member.leave()


@pytest.fixture
def members(kafka, unique_name, make_topic):
    group = Members(kafka.bootstrap, unique_name, make_topic())
    yield group
    group.end()


def test_members_see_each_other_and_one_of_them_leads(members: Members):
    one, two = members.join("a-1:8083"), members.join("[::1]:8083")
    views = [members.sees(member, "a-1:8083", "[::1]:8083") for member in (one, two)]
    assert sorted(view.is_leader for view in views) == [False, True]
    assert views[0].tokens == {"a-1:8083": (one.token,), "[::1]:8083": (two.token,)}
    generation = views[1].generation
    one.leave()
    assert members.sees(two, "[::1]:8083").generation > generation
    assert two.is_leader and not one.is_leader and one.is_rebalancing
    with pytest.raises(RetriableError, match="are changing"):
        one.view(members.admin)


def test_workers_with_the_same_address_are_told_apart(members: Members):
    one, two = members.join("a:1"), members.join("a:1")
    wait_until(lambda: len(members.sees(two, "a:1").tokens["a:1"]) == 2, "both")
    assert members.sees(one, "a:1").tokens["a:1"] == tuple(sorted([one.token, two.token]))


def test_a_session_that_the_brokers_refuse_is_told_with_its_key(members: Members):
    problem = members.problem(members.join("a:1", Timeouts(session=100, heartbeat=50, rebalance=1000)))
    assert isinstance(problem, ConfigError) and problem.config_path == "session.timeout.ms"


def test_a_group_with_members_of_another_kind_is_told(members: Members, unique_name, make_topic):
    other = group_member(members.settings, {"group.id": unique_name, "partition.assignment.strategy": "roundrobin"})
    try:
        other.subscribe([make_topic()])
        wait_until(lambda: other.poll(0.1) is None and bool(other.memberid()), "the other member")
        assert isinstance(members.problem(members.join("a:1")), NotStoppedError)
    finally:
        other.close()
