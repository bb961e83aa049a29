"""A run that cannot use the fast path to Kafka copies the same records, and its report says why it was slower."""

from airflow_connect.kafka.clients import librdkafka
from airflow_connect.runtime.driver.entry import plan_connector
from tests.support.copies.s3 import numbered


def test_report_of_a_sink_says_why_records_were_read_by_the_slow_path(make_topic, produce, make_sink, monkeypatch):
    topic = make_topic(partitions=2)
    produce(topic, numbered(0, 30, 2)[0])
    monkeypatch.setattr(librdkafka, "_found_library", lambda: "Python is a free-threaded build")
    sink = make_sink(topic, tasks_max="2")

    report = sink.run()

    assert report.notes == ("Kafka was read for a while by the slower Python client: Python is a free-threaded build.",)
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_report_of_a_run_on_the_fast_path_says_nothing(make_topic, produce, make_sink):
    topic = make_topic(partitions=2)
    produce(topic, numbered(0, 30, 2)[0])
    assert make_sink(topic).run().notes == ()


def test_plan_says_what_keeps_records_out_of_columns_and_the_report_of_a_few_does_not(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, numbered(0, 3)[0])
    headers = {"header.converter": "org.apache.kafka.connect.json.JsonConverter"}
    plain, slow = make_sink(topic), make_sink(topic, **headers)

    of_plain, of_slow = plan_connector(plain.spec()), plan_connector(slow.spec())

    assert of_plain.notes == ()
    (note,) = of_slow.notes
    assert note.startswith("Records will be processed one by one instead of in columns, which is slower, because of")
    assert note.endswith("the header converter (JsonConverter).")
    assert slow.run().notes == ()
