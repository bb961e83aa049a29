"""Hand-over between the real MirrorMaker 2 and this package, on the same offsets topic, in both directions."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from airflow_connect.connectors.mirror.protocol.records import Checkpoint
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import run_here
from tests.devstack.mirror_worker import MirrorWorker
from tests.integration.connectors.mirror.conftest import Mirror, checkpoints_of, commit, committed, records_of
from tests.integration.connectors.mirror.conftest import offsets_of as offsets_of_records
from tests.support.kafka_data import partition_count
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
FOR_MIRRORMAKER = {
    # Set by MirrorMaker 2 in dedicated mode, but not for a connector of another worker.
    "key.converter": BYTES,
    "value.converter": BYTES,
    "header.converter": BYTES,
    "consumer.isolation.level": "read_committed",
    "refresh.topics.interval.seconds": "1",
    "sync.topic.acls.enabled": "false",
    "offset-syncs.topic.replication.factor": "1",
}
CHECKPOINT = "org.apache.kafka.connect.mirror.MirrorCheckpointConnector"
FOR_CHECKPOINTS = {
    "checkpoints.topic.replication.factor": "1",
    "refresh.groups.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
}


@pytest.fixture(scope="module")
def state_topics() -> dict[str, str]:
    """Where both keep their state."""
    name = f"mirror-{uuid.uuid4().hex[:8]}"
    kinds = {f"{kind}.storage.topic": f"{name}-{kind}" for kind in ("config", "offset", "status")}
    return {"group.id": f"{name}-workers", **kinds}


@pytest.fixture(scope="module")
def worker(kafka: KafkaBroker, state_topics: dict[str, str]) -> Iterator[MirrorWorker]:
    """A worker on the target cluster that writes sources exactly once."""
    more = {"exactly.once.source.support": "enabled", "session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"}
    with MirrorWorker.start(kafka.bootstrap, state_topics["group.id"], {**state_topics, **more}) as running:
        yield running


# It starts a JVM of its own, and MirrorMaker 2 needs seconds to begin.
@pytest.mark.budget(40)
def test_mirror_goes_from_mirrormaker_to_here_and_back_without_loss_or_doubles(
    mirror: Mirror, worker: MirrorWorker, state_topics: dict[str, str]
) -> None:
    spec = mirror.spec(**{name.replace(".", "_"): value for name, value in FOR_MIRRORMAKER.items()})
    spec = replace(spec, worker={**spec.worker, **state_topics})
    config = {name: value for name, value in spec.connector.items() if name != "name"}

    feed(mirror, 0)
    worker.rest.create(mirror.name, config)
    wait_for_copies(mirror, 30)
    worker.rest.stop(mirror.name)
    assert offsets_of(worker, mirror) == [{"offset": 9}] * 3

    feed(mirror, 1)
    assert ours(spec).records == 30
    assert [offset["offset"] for offset in offsets_of(worker, mirror)] == [19] * 3

    feed(mirror, 2)
    worker.rest.resume(mirror.name)
    wait_for_copies(mirror, 90)
    worker.rest.stop(mirror.name)

    feed(mirror, 3)
    assert ours(spec).records == 30
    assert mirror.copies() == mirror.originals()


# MirrorMaker 2 needs seconds to begin, and again after it was stopped.
@pytest.mark.budget(40)
def test_offset_syncs_and_checkpoints_go_from_mirrormaker_to_here_and_back(
    mirror: Mirror, worker: MirrorWorker, state_topics: dict[str, str]
) -> None:
    group = f"app-{mirror.topic}"
    more = {name.replace(".", "_"): value for name, value in {**FOR_MIRRORMAKER, **FOR_CHECKPOINTS}.items()}
    copy = replace(mirror.spec(**more), worker={**mirror.spec().worker, **state_topics})
    own = {"name": group, "connector_class": CHECKPOINT, "groups": group}
    check = replace(copy, connector=mirror.spec(**more, **own).connector)
    seen: list[Checkpoint] = []

    def newest(upstream: int) -> list[Checkpoint]:
        """Checkpoints of this group at an offset, of each partition the last one."""
        seen[:] = checkpoints_of(mirror, group)
        return sorted({one.topic_partition: one for one in seen if one.upstream == upstream}.values())

    # MirrorMaker 2 copies ten records of each partition, and translates the group that has read all of them.
    feed(mirror, 0)
    commit(mirror.source, group, mirror.topic, dict.fromkeys(range(3), 10))
    for spec in (copy, check):
        config = {name: value for name, value in spec.connector.items() if name != "name"}
        worker.rest.create(spec.connector["name"], config)
    wait_for_copies(mirror, 30)
    wait_until(lambda: len(newest(10)) == 3, "checkpoints of MirrorMaker", every_s=0.2)
    for spec in (copy, check):
        worker.rest.stop(spec.connector["name"])

    # Here: a group in the middle of a run is translated exactly, and one where MirrorMaker 2 has stopped as by it.
    feed(mirror, 1)
    assert ours(copy).records == 30
    copies = offsets_of_records(mirror.target, mirror.remote)
    commit(mirror.source, group, mirror.topic, dict.fromkeys(range(3), 14))
    assert ours(check).records == 3
    assert [one.downstream for one in newest(14)] == [copies[number][14] for number in range(3)]
    assert committed(mirror.target, group, mirror.remote) == {n: (copies[n][14], "") for n in range(3)}

    # MirrorMaker 2 again: it reads our offset syncs. At the end of our run, it translates exactly.
    commit(mirror.source, group, mirror.topic, dict.fromkeys(range(3), 20))
    for spec in (copy, check):
        worker.rest.resume(spec.connector["name"])
    wait_until(lambda: len(newest(20)) == 3, "checkpoints of MirrorMaker", every_s=0.2)
    assert [one.downstream for one in newest(20)] == [copies[number][19] + 1 for number in range(3)]
    feed(mirror, 2)
    wait_for_copies(mirror, 90)
    for spec in (copy, check):
        worker.rest.stop(spec.connector["name"])

    # Whoever wrote it: a group that continues at a checkpoint misses no record.
    originals, copies = (
        offsets_of_records(mirror.source, mirror.topic),
        offsets_of_records(mirror.target, mirror.remote),
    )
    for one in seen:
        number = one.topic_partition.partition
        missed = [up for up, down in zip(originals[number], copies[number], strict=True) if down < one.downstream]
        assert all(up < one.upstream for up in missed), one


def feed(mirror: Mirror, batch: int) -> None:
    """Write ten more records to each partition, every second one with a header."""
    headers = [("trace", b"1"), ("trace", None)]
    numbers = range(10 * batch, 10 * batch + 10)
    mirror.write(
        mirror.topic,
        [(p, str(n), f"value {n}", 1_000 + n, headers if n % 2 else []) for p in range(3) for n in numbers],
    )


def ours(spec: RunSpec) -> RunReport:
    """One run of ours that must not fail."""
    report, _ = run_here(spec)
    assert report.status == "done", report.error
    return report


def wait_for_copies(mirror: Mirror, count: int) -> None:
    """Wait until MirrorMaker has committed that many records."""

    def are_there() -> bool:
        return sum(map(len, records_of(mirror.target, mirror.remote).values())) >= count

    wait_until(lambda: partition_count(mirror.target, mirror.remote) == 3, f"the topic {mirror.remote}")
    wait_until(are_there, f"{count} records of MirrorMaker", every_s=0.1)


def offsets_of(worker: MirrorWorker, mirror: Mirror) -> list[dict[str, object]]:
    """Offsets as Kafka Connect's REST API shows them, by partition."""
    found = worker.rest.offsets(mirror.name)
    return [dict(one["offset"]) for one in sorted(found, key=lambda one: int(one["partition"]["partition"]))]
