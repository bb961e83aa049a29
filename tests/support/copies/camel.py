"""Camel's file connectors."""

from __future__ import annotations

from pathlib import Path

from tests.support.copies.java_plugin import JavaConnector

LOCK = "camel-kafka-0.11.0"
PACKAGE = "org.apache.camel.kafkaconnector"
STRING = "org.apache.kafka.connect.storage.StringConverter"
STRINGS = {"key.converter": STRING, "value.converter": STRING}


def file_source(bootstrap: str, plugins: Path, folder: Path, topic: str, name: str) -> JavaConnector:
    """A source that reads the files of a folder, which is made; each becomes a record."""
    folder.mkdir()
    config = {
        "connector.class": f"{PACKAGE}.CamelSourceConnector",
        "topics": topic,
        "camel.source.url": f"file:{folder}?delay=100&initialDelay=0",
        "transforms": "text",
        "transforms.text.type": f"{PACKAGE}.transforms.CamelTypeConverterTransform$Value",
        "transforms.text.target.type": "java.lang.String",
        "airflow.java.start.grace.ms": "2000",
        "airflow.java.idle.ms": "1000",
    }
    return JavaConnector(bootstrap, name, plugins, config, STRINGS)


def values_of(source: JavaConnector) -> list[str]:
    """What is in its topic."""
    return [(message.value() or b"").decode() for message in source.messages(source.config["topics"])]


def contents(first: int, last: int) -> list[str]:
    """Of files with these numbers."""
    return [f"file {number}\n" for number in range(first, last)]


def put_files(folder: Path, first: int, last: int) -> None:
    """Write files with these numbers."""
    for number, text in zip(range(first, last), contents(first, last), strict=True):
        (folder / f"{number}.txt").write_text(text)
