"""What stagers of all stores do alike: a task that fails does not wait for what has not begun, nor for ever."""

import threading
from concurrent.futures import Future

import pytest

from airflow_connect.stores.staging import StagingThreads, results


def test_first_failure_is_raised_although_earlier_results_are_still_awaited():
    waiting, failed = Future(), Future()
    failed.set_exception(OSError("refused"))

    with pytest.raises(OSError, match="refused"):
        results([waiting, failed])


def test_results_come_in_their_order():
    futures = [Future() for _ in range(3)]
    for number in (2, 0, 1):
        futures[number].set_result(number)

    assert results(futures) == [0, 1, 2]


def test_closing_waits_for_all_work():
    threads, done = StagingThreads(2, "test"), []
    for number in range(20):
        threads.submit(lambda number=number: done.append(number))
    threads.close()
    threads.close()

    assert sorted(done) == list(range(20))


def test_closing_gives_up_work_that_hangs_and_cancels_what_has_not_begun(caplog):
    threads, begun, release = StagingThreads(1, "test"), threading.Event(), threading.Event()

    def hang():
        begun.set()
        release.wait(30)

    threads.submit(hang)
    queued = threads.submit(lambda: None)
    assert begun.wait(30)
    threads.close(within_s=0.01)
    release.set()

    assert queued.cancelled()
    assert "did not answer 2 requests" in caplog.text


def test_work_that_fails_does_not_keep_closing_from_its_end():
    threads = StagingThreads(1, "test")

    def fail():
        raise OSError("refused")

    failed = threads.submit(fail)
    threads.close()

    assert isinstance(failed.exception(), OSError)
