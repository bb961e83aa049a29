"""RSVP events like those that meetup.com used to stream; the same seed gives the same events."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from airflow_connect.devstack.topic_data import DemoRecord

TOPIC = "meetups"
PARTITIONS = 5
MINUTES = 24
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

_CITIES = (
    ("Berlin", "de", 52.52, 13.40),
    ("Lagos", "ng", 6.52, 3.38),
    ("London", "gb", 51.51, -0.13),
    ("Mumbai", "in", 19.08, 72.88),
    ("New York", "us", 40.71, -74.01),
    ("Paris", "fr", 48.86, 2.35),
    ("São Paulo", "br", -23.55, -46.63),
    ("Tokyo", "jp", 35.68, 139.69),
)
_SUBJECTS = ("Apache Kafka", "Data Engineering", "Board Games", "Hiking", "Python", "Photography", "Salsa", "Chess")
_KINDS = ("Meetup", "Night", "Workshop", "Beginners", "Open Table")
_FIRST_NAMES = ("Ada", "Bola", "Chiara", "Dmitri", "Emeka", "Fatima", "Grace", "Hiro", "Ines", "Jürgen", "Kavya", "Li")


def rsvps(count: int, now_ms: int, seed: int = 1) -> Iterator[DemoRecord]:
    """Records in the order of their timestamps: 24 minutes, on both sides of the last full hour.

    Args:
        count: number of records.
        now_ms: present time, milliseconds since the epoch.
        seed: of the pseudo-random content.
    """
    chance = random.Random(seed)
    begin_ms = now_ms // HOUR_MS * HOUR_MS - MINUTES * MINUTE_MS // 2
    groups = [_group(number, chance) for number in range(200)]
    for number in range(count):
        group = groups[chance.randrange(len(groups))]
        timestamp_ms = begin_ms + number * MINUTES * MINUTE_MS // count
        value = json.dumps(_rsvp(number, group, timestamp_ms, chance), ensure_ascii=False).encode()
        yield DemoRecord(group["group_id"] % PARTITIONS, str(group["group_id"]).encode(), value, timestamp_ms)


def _group(number: int, chance: random.Random) -> dict[str, Any]:
    city, country, latitude, longitude = chance.choice(_CITIES)
    subject = chance.choice(_SUBJECTS)
    return {
        "group_id": 1_000_000 + number,
        "group_name": f"{city} {subject}",
        "group_city": city,
        "group_country": country,
        "group_lat": latitude,
        "group_lon": longitude,
        "group_topic": subject,
    }


def _rsvp(number: int, group: dict[str, Any], timestamp_ms: int, chance: random.Random) -> dict[str, Any]:
    event = chance.randrange(10_000)
    return {
        "rsvp_id": 1_700_000_000 + number,
        "mtime": timestamp_ms,
        "response": "yes" if chance.random() < 0.8 else "no",
        "guests": chance.choice((0, 0, 0, 1, 2)),
        "member": {"member_id": chance.randrange(10**8), "member_name": chance.choice(_FIRST_NAMES)},
        "event": {
            "event_id": f"evt{event:05d}",
            "event_name": f"{group['group_topic']} {_KINDS[event % len(_KINDS)]}",
            "time": timestamp_ms + (1 + event % 28) * 24 * HOUR_MS,
        },
        "group": group,
    }
