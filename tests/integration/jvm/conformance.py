"""The conformance plugins of `plugins/*.java`, compiled."""

from __future__ import annotations

from pathlib import Path

from airflow_connect.jvm.host_jars import LOCK
from airflow_connect.jvm.jars.locked_jars import fetch_jars
from tests.devstack.java_compiler import compiled_jar
from tests.integration.jvm.hosting import chain_services

SOURCES = Path(__file__).with_name("plugins")
KINDS = {
    "org.apache.kafka.connect.source.SourceConnector": (
        "plugins/FailingSources$*",
        "plugins/OddSources$*",
        "plugins/ResumingSource",
        "plugins/TypedSource",
        "plugins/SlowSources$*",
        "plugins/NoisySources$*",
        "plugins/Measured$Numbers",
        "io/debezium/like/LikeDebezium",
    ),
    "org.apache.kafka.connect.transforms.Transformation": ("plugins/OddStages$*",),
    "org.apache.kafka.common.config.provider.ConfigProvider": ("plugins/Vault",),
    "org.apache.kafka.connect.sink.SinkConnector": (
        "plugins/Sinks$*",
        "plugins/OddSinks$*",
        "plugins/Upserts",
        "plugins/GroupSink",
        "plugins/Measured$Counts",
    ),
}


def conformance_plugins(folder: Path) -> Path:
    """Put them into a folder as in `plugin.path`, and return it."""
    jar = compiled_jar(sorted(SOURCES.rglob("*.java")), fetch_jars(LOCK), _service_files)
    (folder / "conformance").mkdir(parents=True)
    (folder / "conformance" / "conformance.jar").symlink_to(jar)
    return folder


def _service_files(classes: Path) -> dict[str, str]:
    """Connectors, by kind, without the classes that are nested in them; parts of chains."""
    files = chain_services()
    for kind, patterns in KINDS.items():
        names = [
            path.relative_to(classes).with_suffix("").as_posix().replace("/", ".")
            for pattern in patterns
            for path in sorted(classes.glob(f"{pattern}.class"))
            if path.stem.count("$") <= 1
        ]
        own = files.get(f"META-INF/services/{kind}", "")
        files[f"META-INF/services/{kind}"] = own + "\n".join(names) + "\n"
    return files
