"""Clusters that differ from each other, and from what a test usually has: logins, disks, settings of topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.integration.connectors.mirror.conftest import Mirror
from tests.integration.connectors.mirror.test_topics import alter, settings_of
from tests.support.kafka_data import TopicProducer, create_topic
from tests.support.processes.small_disk import on_a_small_disk
from tests.support.servers.certificates import self_signed

pytestmark = pytest.mark.integration

USER, PASSWORD = "mirror", "s3cret-of-the-source"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
ROWS = [(n % 3, str(n), f"value {n}", 1_000 + n, [("h", b"1")] * (n % 2)) for n in range(900)]


class SecuredBroker(KafkaBroker):
    """A broker with one more listener, which wants TLS and a login."""

    port_count = 3

    @property
    def secured(self) -> str:
        """For `bootstrap.servers`."""
        return f"127.0.0.1:{self.ports[2]}"

    def _program(self) -> Sequence[str]:
        plain, controller, secured = self.ports
        certificate = self_signed(self.data_dir)
        listener = "listener.name.secured."
        own = f"PLAINTEXT://127.0.0.1:{plain},SECURED://127.0.0.1:{secured}"
        self._properties |= {
            "listeners": f"{own},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": own,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL",
            f"{listener}sasl.enabled.mechanisms": "PLAIN",
            f"{listener}plain.sasl.jaas.config": f'{LOGIN} user_{USER}="{PASSWORD}";',
            f"{listener}ssl.keystore.type": "PEM",
            f"{listener}ssl.keystore.location": str(certificate),
        }
        return super()._program()


@pytest.fixture(scope="module")
def secured_kafka() -> Iterator[SecuredBroker]:
    """A source cluster with a login."""
    with SecuredBroker.start() as broker:
        yield broker


def logged_in(broker: SecuredBroker, password: str) -> Mapping[str, str]:
    """The connector's settings of the source cluster, as MirrorMaker 2 takes them."""
    source = "source.cluster."
    return {
        f"{source}bootstrap.servers": broker.secured,
        f"{source}security.protocol": "SASL_SSL",
        f"{source}sasl.mechanism": "PLAIN",
        f"{source}sasl.jaas.config": f'{LOGIN} username="{USER}" password="{password}";',
        f"{source}ssl.truststore.type": "PEM",
        f"{source}ssl.truststore.location": str(broker.data_dir / "server.pem"),
    }


# It starts a broker.
@pytest.mark.budget(25)
def test_source_with_tls_and_a_login_is_mirrored_to_a_target_without(
    secured_kafka: SecuredBroker, kafka: KafkaBroker, unique_name: str
) -> None:
    create_topic(secured_kafka.bootstrap, unique_name, 3)
    writer = TopicProducer(secured_kafka.bootstrap)
    mirror = Mirror(secured_kafka.bootstrap, kafka.bootstrap, unique_name, writer)
    mirror.write(mirror.topic, ROWS)
    mirror.config |= logged_in(secured_kafka, "wrong-s3cret")

    refused = mirror.try_run()
    mirror.config |= logged_in(secured_kafka, PASSWORD)
    done = mirror.run()

    assert refused.status == "failed" and refused.error is not None
    assert "Authentication failed" in refused.error["message"]
    assert "wrong-s3cret" not in str(refused.to_json())
    assert (done.records, done.delivery_guarantee, done.notes) == (len(ROWS), "exactly_once", ())
    assert mirror.copies() == mirror.originals()


# Its broker starts twice, and ends by itself in between; the run that fails waits a minute for it.
@pytest.mark.crash
@pytest.mark.budget(90)
@pytest.mark.timeout(600)
def test_full_disk_of_the_target_fails_the_run_and_the_next_one_copies_the_rest(
    upstream_kafka: KafkaBroker, unique_name: str, tmp_path: Path
) -> None:
    create_topic(upstream_kafka.bootstrap, unique_name, 3)
    program = "tests.integration.connectors.mirror.full_target"
    found = on_a_small_disk(tmp_path, "24m", program, unique_name, BOOTSTRAP=upstream_kafka.bootstrap)

    assert [found[run]["status"] for run in ("first", "full", "after")] == ["done", "failed", "done"]
    assert found["full"]["error"]["retriable"] is True
    assert found["is_equal"] is True


def test_times_that_the_source_has_set_are_kept_and_its_setting_is_not(mirror: Mirror) -> None:
    alter(mirror.source, mirror.topic, message_timestamp_type="LogAppendTime")
    mirror.write(mirror.topic, ROWS)

    mirror.run()

    originals = mirror.originals()
    assert min(record.timestamp for record in originals[0]) > 1_600_000_000_000  # not those of `ROWS`
    assert mirror.copies() == originals
    assert settings_of(mirror.target, mirror.remote) == {}


def test_target_that_sets_times_itself_keeps_everything_else(mirror: Mirror) -> None:
    mirror.run()
    alter(mirror.target, mirror.remote, message_timestamp_type="LogAppendTime")
    mirror.write(mirror.topic, ROWS)

    # Otherwise the setting would be returned to the default.
    mirror.run(sync_topic_configs_enabled="false")

    copies, originals = mirror.copies(), mirror.originals()
    assert min(record.timestamp for record in copies[0]) > 1_600_000_000_000
    for number, records in originals.items():
        assert [one._replace(timestamp=0) for one in copies[number]] == [one._replace(timestamp=0) for one in records]


def codecs_of(broker: KafkaBroker, topic: str) -> set[int]:
    """Codecs of the batches of partition 0, as its log has them: the lowest bits of their attributes."""
    found = set()
    for log in (broker.data_dir / "log" / f"{topic}-0").glob("*.log"):
        data, at = log.read_bytes(), 0
        while at < len(data):
            attributes = int.from_bytes(data[at + 21 : at + 23], "big")
            if not attributes & 0x20:  # the markers of transactions are never compressed
                found.add(attributes & 0x07)
            at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    return found


@pytest.mark.parametrize(
    ("topic_setting", "producer_setting", "codec"),
    [(None, None, 0), (None, "lz4", 3), ("zstd", None, 4), ("zstd", "lz4", 4), ("uncompressed", "lz4", 0)],
)
def test_copies_are_compressed_as_the_topic_says_or_else_as_the_producer_is_told(
    secured_kafka: SecuredBroker,
    upstream_kafka: KafkaBroker,
    unique_name: str,
    topic_setting: str | None,
    producer_setting: str | None,
    codec: int,
) -> None:
    create_topic(upstream_kafka.bootstrap, unique_name, 3)
    writer = TopicProducer(upstream_kafka.bootstrap)
    mirror = Mirror(upstream_kafka.bootstrap, secured_kafka.bootstrap, unique_name, writer)
    if topic_setting is not None:
        alter(mirror.source, mirror.topic, compression_type=topic_setting)
    if producer_setting is not None:
        mirror.config["producer.override.compression.type"] = producer_setting
    mirror.write(mirror.topic, ROWS, {"compression.type": "snappy"})

    mirror.run()

    assert mirror.copies() == mirror.originals()
    assert codecs_of(secured_kafka, mirror.remote) == {codec}
