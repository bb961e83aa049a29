import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.errors import ConfigError
from airflow_connect.layout.rotation import next_schedule
from airflow_connect.layout.time.time_zones import DAY_MS, HOUR_MS, Zone

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "+05:30",
    "Pacific/Apia",
]
INSTANTS = st.one_of(st.integers(1_500_000_000_000, 1_700_000_000_000), st.integers(-(2**61), 2**61))


def test_ids_are_accepted_and_refused_as_by_joda(recorded):
    for row in recorded("zone"):
        if "error" in row:
            with pytest.raises(ConfigError, match="is not recognised"):
                Zone.of(row["id"])
        else:
            zone = Zone.of(row["id"])
            assert (zone.offset_ms(1704067200000), zone.offset_ms(1719792000000)) == (row["winter"], row["summer"])


def test_local_days_start_and_last_as_at_joda(recorded):
    for row in recorded("day"):
        zone = Zone.of(row["zone"])
        for ms, start, length in zip(row["ms"], row["starts"], row["lengths"], strict=True):
            assert zone.start_of_day_ms(zone.local_ms(ms) // DAY_MS) == start, (row["zone"], ms)
            # An interval longer than the day is cut at its end.
            assert next_schedule(ms, 3 * DAY_MS, zone) == start + length, (row["zone"], ms)


@given(INSTANTS, st.sampled_from(ZONES))
def test_instant_of_the_local_time_is_the_instant_or_its_double(ms, zone_id):
    zone = Zone.of(zone_id)
    back = zone.instant_ms(zone.local_ms(ms))
    assert zone.local_ms(back) == zone.local_ms(ms)
    assert abs(back - ms) <= HOUR_MS or zone_id == "Pacific/Apia"


@given(st.lists(INSTANTS, max_size=50), st.sampled_from(ZONES))
def test_offsets_of_many_instants_equal_the_offsets_of_each(instants, zone_id):
    zone = Zone.of(zone_id)
    offsets = np.broadcast_to(zone.offsets_of(np.array(instants, dtype=np.int64)), len(instants))
    assert offsets.tolist() == [zone.offset_ms(ms) for ms in instants]


def test_offsets_change_at_the_very_millisecond():
    zone = Zone.of("Europe/Berlin")
    change = 1711846800000  # 2024-03-31T01:00Z
    assert [zone.offset_ms(change + ms) // HOUR_MS for ms in (-1, 0)] == [1, 2]
    assert (zone.offsets_of(np.array([change - 1, change])) // HOUR_MS).tolist() == [1, 2]


def test_years_beyond_datetime_have_the_rules_of_near_years():
    zone = Zone.of("Europe/Berlin")
    july_of_50001 = 1515740558400000 * 1 + 181 * DAY_MS
    assert zone.offset_ms(july_of_50001) in (HOUR_MS, 2 * HOUR_MS)
    assert zone.offset_ms(july_of_50001) == zone.offset_ms(july_of_50001 - 146_097 * DAY_MS)


@pytest.mark.parametrize(
    ("zone", "now", "interval", "expected"),
    [
        ("UTC", "2024-05-01T00:00:00", HOUR_MS, "2024-05-01T01:00:00"),
        ("UTC", "2024-04-30T23:59:59", HOUR_MS, "2024-05-01T00:00:00"),
        ("UTC", "2024-05-01T20:59:59", 7 * HOUR_MS, "2024-05-01T21:00:00"),
        ("UTC", "2024-05-01T21:00:00", 7 * HOUR_MS, "2024-05-02T00:00:00"),
        (
            "Europe/Berlin",
            "2024-03-30T23:30:00",
            6 * HOUR_MS,
            "2024-03-31T05:00:00",
        ),  # 23 hours: 6 h after midnight is 07:00
        ("Europe/Berlin", "2024-03-31T21:59:59", 12 * HOUR_MS, "2024-03-31T22:00:00"),
        ("Europe/Berlin", "2024-10-27T22:30:00", 12 * HOUR_MS, "2024-10-27T23:00:00"),  # 25 hours
        ("Europe/Berlin", "2024-10-27T21:59:00", 24 * HOUR_MS, "2024-10-27T22:00:00"),
    ],
)
def test_schedule_is_a_grid_from_local_midnight(zone, now, interval, expected):
    def ms(text: str) -> int:
        return int(np.datetime64(text, "ms").astype(np.int64))

    assert next_schedule(ms(now), interval, Zone.of(zone)) == ms(expected)
