"""Keys of the plugin hosts, the JVMs that run Java classes: of Java connectors, and of chains with Java classes."""

from __future__ import annotations

from airflow_connect.api.config.typed import KeyGroup, TypedConfig
from airflow_connect.api.config.validators import Range

_JAVA = KeyGroup("Java")


class JavaKeys(TypedConfig):
    """Settings of the plugin hosts."""

    # fmt: off
    heap_mb = _JAVA.medium.integer(
        "airflow.java.heap.mb", 512,
        "Largest Java heap of each plugin host, in MiB. A Java connector has one host on the driver and one for each"
        " task; Java classes in the chain of another connector have one for each task. Each takes about 120 MiB more"
        " than its heap.",
        Range(64), display_name="Heap",
    )
    options = _JAVA.low.words(
        "airflow.java.options", "", "More options for Java, with commas: `-Dkey=value,-XX:+UseG1GC`.",
        display_name="Options",
    )
    connect_home = _JAVA.low.text(
        "airflow.java.connect.home", "",
        "Folder with the jars of Kafka Connect 4.1 or newer (`libs` of a Kafka installation), where driver and"
        " executors run. Blank: those of version 4.3.1, which are fetched from Maven Central once.",
        display_name="Jars of Kafka Connect",
    )
    block_timeout_ms = _JAVA.low.long(
        "airflow.java.block.timeout.ms", 60_000,
        "How long a call of the plugin, such as `poll` or `put`, may take, in milliseconds. The run fails after it, and"
        " the message shows where the plugin is.",
        Range(1_000), display_name="Longest call",
    )
    # fmt: on

    @property
    def call_timeout_s(self) -> float:
        """`airflow.java.block.timeout.ms`, in seconds."""
        return self.block_timeout_ms / 1000
