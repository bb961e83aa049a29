import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.errors import ConfigError
from airflow_connect.layout.time.date_patterns import compile_pattern
from airflow_connect.layout.time.time_zones import Zone

UTC = Zone.of("UTC")
# Text of the names of zones: Java has some of its own, see the module's documentation.
ZONE_NAME = re.compile("^z+$")


def test_patterns_in_every_zone_and_locale_print_what_joda_printed(recorded):
    checked = 0
    for row in recorded("format"):
        if ZONE_NAME.match(row["pattern"]) or (row["pattern"], row["zone"]) == ("ZZZ", "GMT"):
            continue  # ZZZ: Joda-Time resolves the alias GMT to Etc/GMT
        pattern = compile_pattern(row["pattern"], row["locale"], Zone.of(row["zone"]))
        assert [pattern(ms) for ms in row["ms"]] == row["texts"], (row["pattern"], row["locale"], row["zone"])
        checked += len(row["ms"])
    assert checked > 5000


@pytest.mark.parametrize(
    ("zone", "locale", "short", "long"),
    [
        ("Europe/Berlin", "en", ["CET", "CEST"], ["Central European Standard Time", "Central European Summer Time"]),
        ("Europe/Berlin", "de", ["MEZ", "MESZ"], ["Mitteleuropäische Normalzeit", "Mitteleuropäische Sommerzeit"]),
        ("America/New_York", "en", ["EST", "EDT"], ["Eastern Standard Time", "Eastern Daylight Time"]),
        ("Asia/Tokyo", "en", ["JST", "JST"], ["Japan Standard Time", "Japan Standard Time"]),
        ("UTC", "en", ["UTC", "UTC"], ["Coordinated Universal Time", "Coordinated Universal Time"]),
        ("+05:30", "de", ["+05:30", "+05:30"], ["+05:30", "+05:30"]),
    ],
)
def test_zone_names_of_common_zones_are_those_of_java(recorded, zone, locale, short, long):
    for letters, texts in (("z", short), ("zzzz", long)):
        pattern = compile_pattern(letters, locale, Zone.of(zone))
        assert [pattern(ms) for ms in (1704067200000, 1719792000000)] == texts
        rows = [r for r in recorded("format") if (r["pattern"], r["zone"], r["locale"]) == (letters, zone, locale)]
        assert texts in [row["texts"] for row in rows]


def test_zone_without_a_name_prints_its_offset():
    assert compile_pattern("z", "en", Zone.of("America/Sao_Paulo"))(0) == "-03:00"


def test_illegal_patterns_name_the_component_as_joda_does(recorded):
    for row in recorded("illegal"):
        with pytest.raises(ConfigError) as caught:
            compile_pattern(row["pattern"], "en", UTC)
        assert row["message"] in caught.value.message
        assert caught.value.config_path == "path.format"


def test_year_of_era_is_not_the_week_year():
    last_monday_of_2024 = 1735562096789
    assert compile_pattern("YYYY xxxx", "en", UTC)(last_monday_of_2024) == "2024 2025"


def test_locale_is_a_whole_language_and_its_case_does_not_matter():
    july = 1719792000000
    assert compile_pattern("MMMM", "DE", UTC)(july) == "Juli"
    assert compile_pattern("MMMM", "en", UTC)(july) == "July"
    assert compile_pattern("MMMM", "en_US", UTC)(july) == "Jul"


@given(
    st.integers(-(2**62), 2**62),
    st.sampled_from(
        ["'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", "yy-MMM-EEEE a h K k", "G C xx w e D S ZZ", "z Z ZZZ"]
    ),
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"]),
)
def test_regex_matches_every_text_of_the_pattern(ms, text, zone):
    pattern = compile_pattern(text, "en", Zone.of(zone))
    assert re.fullmatch(pattern.regex, pattern(ms))


def test_regex_does_not_match_other_texts():
    regex = compile_pattern("'year'=YYYY/'month'=MM", "en", UTC).regex
    assert re.fullmatch(regex, "year=2024/month=01")
    assert not re.fullmatch(regex, "year=2024/month=1")
    assert not re.fullmatch(regex, "year=2024/month=01/day=01")
    assert not re.fullmatch(regex, "years2024/month=01")
