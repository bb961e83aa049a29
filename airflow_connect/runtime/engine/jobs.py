"""The Spark jobs of runs that share a session: their names, their fair share, their end.

Classic Spark names the jobs of a thread by a group (`SparkContext.setJobGroup`), Spark Connect by a tag
(`SparkSession.addTag`). Each run calls from a thread of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def named(session: SparkSession, run_id: str, connector: str, *, is_remote: bool) -> Iterator[None]:
    """Jobs that this thread starts in the block belong to a run.

    With `spark.scheduler.mode=FAIR`, each connector has a pool of its own, so tasks of several take turns.
    """
    if not run_id:  # A job of no run, such as a test's.
        yield
    elif is_remote:
        session.addTag(run_id)
        try:
            yield
        finally:
            session.removeTag(run_id)
    else:
        context = session.sparkContext
        context.setJobGroup(run_id, connector, interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", connector)
        yield


def cancel(session: SparkSession, run_id: str, *, is_remote: bool) -> None:
    """Let the jobs of a run fail; Spark ends their tasks within some seconds."""
    if is_remote:
        session.interruptTag(run_id)
    else:
        session.sparkContext.cancelJobGroup(run_id)


def running_tasks(session: SparkSession, run_id: str) -> int:
    """How many tasks of a run Spark is still running, those of failed jobs included. Not for Spark Connect."""
    tracker = session.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(run_id or None)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return sum(stage.numActiveTasks for stage in stages if stage is not None)
