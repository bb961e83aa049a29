"""The topic of each table: its prefix and the table's name, as in Confluent's source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from airflow_connect.api.config import plugins
from airflow_connect.api.source import SourceConnectorContext
from airflow_connect.config.keys.transform_classes import TRANSFORMATION_KIND
from airflow_connect.connectors.jdbc.source.offsets.positions import committed_position
from airflow_connect.connectors.jdbc.source.work import Item
from airflow_connect.errors import ConfigError

_TOPIC = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}")


def chooses_topics(config: Mapping[str, str]) -> bool:
    """Whether transformations may give records other topics: a router may, and any that is not of this package."""
    kind = TRANSFORMATION_KIND
    return any(_may_route(config.get(f"{kind.prefix(alias)}type", "")) for alias in kind.aliases(config))


def _may_route(name: str) -> bool:
    try:
        name = plugins.resolve(TRANSFORMATION_KIND.plugin_kind, name.strip()).name
    except ConfigError:
        return True  # A class of a plugin that runs its chain itself.
    return name not in plugins.built_in(TRANSFORMATION_KIND.plugin_kind) or name.endswith("Router")


def with_topics(items: Sequence[Item], prefix: str, context: SourceConnectorContext) -> list[Item]:
    """The tables whose names may be part of a topic's name, each of a topic of its own; others are left out."""
    found: dict[str, Item] = {}
    # A table that was copied before keeps its topic.
    for item in sorted(items, key=lambda item: not _was_copied(item, context)):
        topic = _topic(item, prefix)
        if not _TOPIC.fullmatch(topic):
            reason = "is not a name of a topic: Kafka allows up to 249 letters of ASCII, digits, dots, hyphens and"
            context.leave_out(item.name, _refused(item, topic, f"{reason} underscores"))
            continue
        taken = found.setdefault(topic.replace(".", "_"), item)
        if taken is not item:
            reason = f"Kafka does not tell from that of {taken.name}: in metrics, dots are underscores"
            context.leave_out(item.name, _refused(item, topic, reason))
    kept = {id(item) for item in found.values()}
    return [item for item in items if id(item) in kept]


def _topic(item: Item, prefix: str) -> str:
    return prefix + (item.table.table if item.table is not None else "")


def _was_copied(item: Item, context: SourceConnectorContext) -> bool:
    return item.table is not None and committed_position(item.table, context.offset_reader)[1] is not None


def _refused(item: Item, topic: str, reason: str) -> ConfigError:
    return ConfigError(
        f"The topic of {item.name} would be {topic!r}, which {reason}.",
        code="database.name",
        suggestion="Give it another topic with the transformation RegexRouter, or copy the table with query.",
    )
