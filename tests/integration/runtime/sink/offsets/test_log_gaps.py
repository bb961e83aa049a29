"""Offsets that hold no record: transaction markers, aborted records, open transactions, compaction."""

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.kafka.reading.batch_reader import RangeReader
from tests.support.copies.s3 import numbered
from tests.support.kafka_data import produce as produce_with
from tests.support.waiting import wait_until


def test_transaction_markers_and_aborted_records_are_passed_over(make_topic, produce, make_sink):
    topic = make_topic()
    produce.transaction(topic, numbered(0, 3)[0], "commit")
    produce.transaction(topic, numbered(100, 105)[0], "abort")
    produce.transaction(topic, numbered(3, 5)[0], "commit")
    sink = make_sink(topic)

    report = sink.run()

    assert report.records == 5
    assert sink.offsets() == {0: 13}  # 10 records and 3 markers
    sink.assert_exactly_once(numbered(0, 5)[1])
    assert sink.run().status == "empty"


def test_nothing_but_aborted_records_moves_the_offset_without_a_file(make_topic, produce, make_sink):
    topic = make_topic()
    produce.transaction(topic, numbered(0, 3)[0], "abort")
    sink = make_sink(topic)

    report = sink.run()

    assert (report.status, report.records, report.files) == ("done", 0, 0)
    assert sink.offsets() == {0: 4}
    assert sink.keys() == []


def test_aborted_records_are_copied_under_read_uncommitted(make_topic, produce, make_sink):
    topic = make_topic()
    produce.transaction(topic, numbered(0, 3)[0], "abort")
    sink = make_sink(topic, consumer_override_isolation_level="read_uncommitted")

    assert sink.run().records == 3
    sink.assert_exactly_once(numbered(0, 3)[1])


def test_open_transaction_ends_the_run_before_it_and_a_later_run_copies_the_rest(make_topic, produce, make_sink):
    topic = make_topic(partitions=2)
    produce(topic, [(0, None, '{"n": 0}'), (1, None, '{"n": 1}')])
    open_one = produce.transaction(topic, [(0, None, '{"n": 2}')], "open")
    produce(topic, [(0, None, '{"n": 3}'), (1, None, '{"n": 4}')])
    sink = make_sink(topic)

    first = sink.run()
    offsets_before = sink.offsets()
    open_one.commit_transaction(30)
    wait_until(lambda: sink.run().records == 2, "the records behind the transaction")

    assert first.records == 3
    assert offsets_before == {0: 1, 1: 2}
    sink.assert_exactly_once(numbered(0, 5)[1])


def test_committed_offset_inside_an_open_transaction_is_kept(make_topic, produce, make_sink):
    """An uncommitted reader may have gone further than the last stable offset; that is no reason to fail."""
    topic = make_topic()
    open_one = produce.transaction(topic, numbered(0, 3)[0], "open")
    sink = make_sink(topic)
    sink.run(consumer_override_isolation_level="read_uncommitted")

    report = sink.run(consumer_override_isolation_level=None)

    assert report.status == "empty"
    assert sink.offsets() == {0: 3}
    open_one.commit_transaction(30)
    sink.assert_exactly_once(numbered(0, 3)[1])


def _compacted(kafka, make_topic):
    return make_topic(
        config={
            "cleanup.policy": "compact",
            "segment.bytes": "1048576",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "0",
            "max.compaction.lag.ms": "100",
        }
    )


def _roll(kafka, topic):
    """Every record so far gets into a closed segment, which is what the cleaner looks at."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    entry = ConfigEntry("segment.ms", "100", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)


def _offsets_in(kafka, topic, end):
    reader = RangeReader({"bootstrap.servers": kafka.bootstrap}, [OffsetRange(topic, 0, 0, end)])
    return [record.offset for _, records in reader.records() for record in records]


def test_compacted_topic_with_gaps_and_a_compacted_tail_is_copied_to_its_end(kafka, make_topic, produce, make_sink):
    topic = _compacted(kafka, make_topic)
    produce(topic, [(0, f"key-{n % 5}", f'{{"n": {n}}}') for n in range(40)])
    # A tail of nothing: aborted records are removed by the cleaner together with their marker.
    produce.transaction(topic, [(0, "key-9", '{"n": 900}'), (0, "key-9", '{"n": 901}')], "abort")
    _roll(kafka, topic)

    def is_compacted():
        produce_with(kafka.bootstrap, topic, [(0, "roll", '{"n": 40}')])
        return len(_offsets_in(kafka, topic, 40)) < 10

    wait_until(is_compacted, "the cleaner has removed older values", every_s=0.3)
    expected = _offsets_in(kafka, topic, 40)
    sink = make_sink(topic, behavior_on_null_values="ignore")

    report = sink.run()

    values = sink.values()
    assert [v["n"] for v in values if v["n"] < 40] == expected
    assert report.records == len(values)
    assert max(v["n"] for v in values) == 40
    assert sink.run().status == "empty"
