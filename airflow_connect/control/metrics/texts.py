"""Beans as texts: Prometheus's format, and JSON as Hadoop's servers answer `/jmx`.

The names for Prometheus are those of the rules that Strimzi publishes for the JMX exporter, so dashboards for Kafka
Connect find them: `kafka_connect_worker_connector_count`. Kafka Connect's task metrics have a label `task`; a bounded
run succeeds or fails as a whole, so here they have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from airflow_connect.control.metrics.beans import CONNECTOR, REBALANCE, WORKER, Bean, Value
from airflow_connect.documentation import page_url

if TYPE_CHECKING:
    from prometheus_client import Metric

_PREFIXES = {WORKER: "kafka_connect_worker", REBALANCE: "kafka_connect_worker_rebalance"}
_LABEL = "connector"
_TOTAL = "_total"
_HELP = "{} of Kafka Connect's bean {}. What it means here: " + page_url("rest")


def jmx_json(beans: Iterable[Bean]) -> bytes:
    """`{"beans": [{"name": "kafka.connect:type=...", "<attribute>": value}]}`."""
    found = [{"name": bean.name, **bean.values} for bean in beans]
    return json.dumps({"beans": found}, indent=1).encode()


def prometheus_text(beans: Sequence[Bean]) -> bytes:
    """The text format of Prometheus, version 0.0.4."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.registry import Collector

    class Beans(Collector):
        """Gives the beans to the library once."""

        def collect(self) -> Iterator[Metric]:
            """Every metric with its samples."""
            yield from _families(beans)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Beans())
    return generate_latest(registry)


def _families(beans: Sequence[Bean]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for bean in beans:
        labels = {_LABEL: bean.connector} if bean.connector else {}
        for attribute, value in _numbers(bean):
            name = f"{_prefix(bean.kind)}_{attribute}".replace("-", "_")
            kind = CounterMetricFamily if name.endswith(_TOTAL) else GaugeMetricFamily
            text = _HELP.format(attribute, bean.kind)
            family = families.setdefault(f"{name} {sorted(labels)}", kind(name, text, labels=list(labels)))
            family.add_metric(list(labels.values()), value)
    yield from families.values()
    yield from _infos(beans)


def _infos(beans: Sequence[Bean]) -> Iterator[Metric]:
    """Texts become labels of a metric that is always 1."""
    from prometheus_client.core import GaugeMetricFamily

    labels = [_LABEL, "status", "connector_class", "connector_type", "connector_version"]
    family = GaugeMetricFamily("kafka_connect_connector_status", "State and class of a connector.", labels=labels)
    for bean in beans:
        if bean.kind == CONNECTOR:
            texts = [str(bean.values[label.replace("_", "-")]) for label in labels[1:]]
            family.add_metric([bean.connector, *texts], 1)
    yield family


def _numbers(bean: Bean) -> Iterator[tuple[str, float]]:
    value: Value
    for attribute, value in bean.values.items():
        if not isinstance(value, str):
            yield attribute, float(value)


def _prefix(kind: str) -> str:
    return _PREFIXES.get(kind) or f"kafka_connect_{kind.removesuffix('-metrics')}"
