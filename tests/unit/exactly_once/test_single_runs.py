"""Single stories of the commit protocol on the model."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from airflow_connect.api.offsets import TopicPartition
from tests.unit.exactly_once.model import CRASH, DENY, LOSE, TOPIC, ModelRun, ModelSession, World


@pytest.fixture
def world(monkeypatch):
    """One partition with ten offsets."""
    monkeypatch.setattr("airflow_connect.runtime.driver.sink.run.SinkSession", ModelSession)
    monkeypatch.setattr(
        "airflow_connect.runtime.driver.progress.ProgressListener",
        lambda *_: nullcontext(SimpleNamespace(target={}, tasks=list)),
    )
    return World(ends={TopicPartition(TOPIC, 0): 10})


def step_to(run, name):
    """Let a run go on until it is about to do `name`."""
    while not run.waiting_for.startswith(name):
        assert not run.is_over, run.error
        run.step("go")


def new_run(world):
    return ModelRun(world, flush_size=2, flush_on_end=True)


def test_manifest_that_was_committed_although_the_run_was_told_it_is_fenced_keeps_its_uploads(world):
    run = new_run(world)
    step_to(run, "manifest")
    staged = dict(world.uploads)
    run.step(DENY)
    run.finish()

    assert world.uploads == staged != {}
    assert type(run.error).__name__ == "FencedError"
    successor = new_run(world)
    successor.finish()
    assert world.committed == world.ends


def test_commit_whose_answer_was_lost_is_not_repeated(world):
    run = new_run(world)
    step_to(run, "commit")
    run.step(LOSE)
    run.finish()
    letters = list(world.dead_letters)
    successor = new_run(world)
    successor.finish()

    assert type(run.error).__name__ == "UnavailableError"
    assert successor.report.status == "empty"
    assert world.dead_letters == letters
    assert len(world.summaries) == 1


def test_manifest_is_rewritten_before_a_file_that_was_copied_again_becomes_visible(world):
    """With SSE-KMS equal bytes have unequal ETags: only the manifest says that the new upload is ours."""
    world.has_comparable_etags = False
    first = new_run(world)
    step_to(first, "complete")
    first.step(CRASH)
    world.uploads.clear()
    second = new_run(world)
    step_to(second, "complete")
    step_to(second, "stage")
    step_to(second, "complete")
    second.step("go")
    second.step(CRASH)
    third = new_run(world)
    third.finish()

    assert third.error is None
    assert world.committed == world.ends
    assert world.uploads == {}


def test_what_a_recovering_run_copies_again_is_not_discarded_by_a_run_that_it_has_fenced(world):
    frozen = new_run(world)
    step_to(frozen, "complete")
    lost = min(token for token, upload in world.uploads.items())
    del world.uploads[lost]
    recovering = new_run(world)
    step_to(recovering, "stage")
    step_to(recovering, "manifest")
    frozen.finish()
    recovering.finish()

    assert type(frozen.error).__name__ == "FencedError"
    assert recovering.error is None
    assert world.committed == world.ends


@pytest.mark.parametrize("moment", ["manifest", "complete", "commit"])
def test_run_that_is_suspended_after_it_has_fenced_discards_nothing_of_the_run_that_fences_it(world, moment):
    """What it reads then is the state of the newer run, which looks like that of a run that has died."""
    suspended = new_run(world)
    step_to(suspended, "read")
    newer = new_run(world)
    step_to(newer, moment)
    suspended.finish()
    newer.finish()

    assert type(suspended.error).__name__ == "FencedError"
    assert newer.error is None
    assert world.committed == world.ends
    assert not world.uploads


def test_run_whose_files_a_newer_run_has_discarded_says_that_it_was_fenced(world):
    """Not that its files are gone, which would be its consequence."""
    older = new_run(world)
    step_to(older, "manifest")
    newer = new_run(world)
    step_to(newer, "look")
    older.step("fail")
    older.finish()
    newer.finish()

    assert type(older.error).__name__ == "FencedError"
    assert "manifest did not happen." in older.error.message
    assert newer.error is None
    assert world.committed == world.ends
