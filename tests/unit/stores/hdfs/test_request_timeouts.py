"""Requests that are not answered: the caller is let go, and nothing else is asked for until they are."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from airflow_connect.stores.hdfs.errors import NoAnswerError
from airflow_connect.stores.hdfs.request_timeouts import RequestTimeouts, TimeoutClient
from tests.support.waiting import wait_until


def requesters() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "hdfs-request"]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Every thread that a test started ends when it is over."""
    before = set(requesters())
    yield
    gc.collect()
    wait_until(lambda: set(requesters()) <= before, "the end of the threads for requests")


def test_an_answer_and_a_refusal_come_back() -> None:
    timeouts = RequestTimeouts()
    with pytest.raises(FileNotFoundError, match="gone"):
        timeouts.get(lambda: refuse(FileNotFoundError("gone")))
    assert timeouts.get(lambda: 3) == 3


def refuse(error: Exception) -> None:
    raise error


def test_one_thread_makes_all_requests_of_a_thread() -> None:
    timeouts = RequestTimeouts()
    assert len({timeouts.get(threading.get_ident) for _ in range(20)}) == 1


def test_requests_of_several_threads_are_made_at_once() -> None:
    timeouts = RequestTimeouts()
    barrier = threading.Barrier(3, timeout=60)
    threads = [threading.Thread(target=timeouts.get, args=(barrier.wait,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    timeouts.get(barrier.wait)
    for thread in threads:
        thread.join()
    assert not barrier.broken


def test_a_silent_server_lets_go_of_its_caller_and_is_not_asked_again_before_it_answers() -> None:
    timeouts, thawed, asked = RequestTimeouts(0.01), threading.Event(), []
    with pytest.raises(NoAnswerError, match="not answered within"):
        timeouts.get(thawed.wait)
    with pytest.raises(NoAnswerError, match="an earlier request"):
        timeouts.get(lambda: asked.append(1))
    assert not asked

    thawed.set()

    def is_asked() -> bool:
        try:
            timeouts.get(lambda: asked.append(1))
        except NoAnswerError:
            return False
        return True

    wait_until(is_asked, "a request that is made again")
    assert asked


def test_a_listing_is_bounded_part_by_part() -> None:
    class Client:
        def list_status(self, path: str, recursive: bool) -> Iterator[str]:
            return (f"{path}/{number}" for number in range(2500))

    listed = TimeoutClient(Client()).list_status("/a", True)  # type: ignore[arg-type]
    assert list(listed) == [f"/a/{number}" for number in range(2500)]
