"""A disk that fills up under a source: that of a standalone worker's offsets file, and the broker's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.support.processes.small_disk import on_a_small_disk

pytestmark = [pytest.mark.integration, pytest.mark.crash]

PROGRAM = "tests.integration.runtime.source.full_disk"


def test_offsets_file_that_cannot_be_written_fails_the_run_and_the_next_one_repeats_nothing(
    kafka: KafkaBroker, tmp_path: Path
) -> None:
    found = on_a_small_disk(tmp_path, "64k", PROGRAM, "offsets", BOOTSTRAP=kafka.bootstrap)

    assert [found[run]["status"] for run in ("first", "full", "after")] == ["done", "failed", "empty"]
    error = found["full"]["error"]
    assert "offset.storage.file.filename" in error["message"] and "No space left on device" in error["message"]
    assert error["retriable"] is True
    # The old file stays whole and alone; the topic of offsets knows what was written, and the next run copies that.
    assert (found["kept"], found["left"], found["changed"]) == (True, ["standalone.offsets"], True)
    assert found["values"] == {"0": list(range(12))}


@pytest.mark.budget(40)  # a broker of its own, started twice
def test_full_disk_of_the_broker_fails_the_run_and_the_next_one_has_each_record_once(tmp_path: Path) -> None:
    found = on_a_small_disk(tmp_path, "24m", PROGRAM, "broker")

    assert [found[run]["status"] for run in ("first", "full", "after")] == ["done", "failed", "done"]
    assert found["full"]["error"]["retriable"] is True
