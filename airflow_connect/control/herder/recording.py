"""What the end of a run changes in the state of its connector."""

from __future__ import annotations

from airflow_connect.control.herder.herder import Herder
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.reporting.redaction import Redactor

_CONFIG = "ConfigError"


def record_run(herder: Herder, report: RunReport, config_offset: int, redact: Redactor) -> None:
    """Record the state and the topics after a run.

    Args:
        herder: of the installation.
        report: of the run.
        config_offset: of the configuration that it had; if another one is registered now, nothing is recorded.
        redact: hides the secrets of that configuration.
    """
    if report.error is None:
        herder.used_topics(report.connector, topics_of(report))
        herder.run_ended(report.connector, config_offset, None, is_config=False)
        return
    trace = redact(f"{report.error['message']} {report.error['suggestion']}".strip())
    is_config = report.error["type"] == _CONFIG
    herder.run_ended(report.connector, config_offset, trace, is_config=is_config)


def topics_of(report: RunReport) -> list[str]:
    """Topics that a run has read or written."""
    if report.source is not None:
        return sorted(report.source.topics)
    if not report.records:
        return []
    return sorted({place.rpartition("-")[0] for place in report.committed})
