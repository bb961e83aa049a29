"""Partitioners, extractors and formats of others: named by dotted path, configured by the connector's own keys."""

from __future__ import annotations

import json

import pytest

from tests.integration.connectors.files.s3.objects import contents, raw

pytestmark = pytest.mark.integration

HERE = "tests.integration.connectors.files.s3.plugins"


def test_partitioner_by_dotted_path_reads_its_own_keys(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, key, json.dumps(key)) for key in ("apple", "ape", "bee")])
    sink = make_sink(topic, **{"partitioner.class": f"{HERE}:KeyPartitioner", "key.letters": "2"})

    report = sink.run()

    assert contents(sink) == {
        f"topics/{topic}/letter=ap/{topic}+0+0000000000.json": ["apple", "ape"],
        f"topics/{topic}/letter=be/{topic}+0+0000000002.json": ["bee"],
    }
    assert "key.letters" not in report.ignored_keys


def test_partitioner_without_from_config_is_called_without_arguments(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, "apple", "1")])
    sink = make_sink(topic, **{"partitioner.class": f"{HERE}.PlainPartitioner"})

    sink.run()

    assert list(contents(sink)) == [f"topics/{topic}/letter=a/{topic}+0+0000000000.json"]


def test_extractor_by_dotted_path_decides_on_time(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, '{"s": 86400}')])
    sink = make_sink(
        topic,
        **{
            "partitioner.class": "HourlyPartitioner", "locale": "en", "timezone": "UTC",
            "timestamp.extractor": f"{HERE}:SecondsExtractor", "seconds.field": "s",
        },
    )  # fmt: skip

    sink.run()

    assert list(contents(sink)) == [f"topics/{topic}/year=1970/month=01/day=02/hour=00/{topic}+0+0000000000.json"]


def test_format_by_dotted_path_writes_the_file(make_topic, produce, make_sink):
    topic = make_topic()
    produce(topic, [(0, None, "1"), (0, None, "2")])
    sink = make_sink(topic, **{"format.class": f"{HERE}:TextFormat", "text.prefix": "> "})

    sink.run()

    (key,) = sink.keys()
    assert key == f"topics/{topic}/partition=0/{topic}+0+0000000000.txt"
    assert raw(sink, key) == b"> 1\n> 2\n"


def test_mistake_in_a_third_partys_configuration_is_a_configuration_error(make_sink):
    sink = make_sink("nowhere", **{"partitioner.class": f"{HERE}:KeyPartitioner"})

    report = sink.try_run()

    assert report.status == "failed"
    assert (report.error["type"], report.error["configPath"]) == ("ConfigError", "partitioner.class")
    assert "KeyPartitioner" in report.error["message"] and "key.letters" in report.error["message"]
