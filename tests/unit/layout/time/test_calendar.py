from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.layout.time.calendar import (
    date_of_days,
    days_in_month,
    days_of_date,
    days_of_week_date,
    is_leap_year,
    week_date_of_days,
    weekday_of_days,
    weeks_in_year,
)

EPOCH = date(1970, 1, 1)
NEAR = st.dates().map(lambda day: (day - EPOCH).days)


@given(NEAR)
def test_dates_and_weeks_equal_those_of_datetime(days):
    expected = EPOCH + timedelta(days=days)
    assert date_of_days(days) == (expected.year, expected.month, expected.day)
    assert (*week_date_of_days(days), weekday_of_days(days)) == tuple(expected.isocalendar())


@given(st.integers(-(10**12), 10**12))
def test_any_day_comes_back_from_its_date_and_its_week(days):
    year, month, day = date_of_days(days)
    assert days_of_date(year, month, day) == days
    assert 1 <= day <= days_in_month(year, month)
    week_year, week = week_date_of_days(days)
    assert 1 <= week <= weeks_in_year(week_year)
    assert days_of_week_date(week_year, week, weekday_of_days(days)) == days


def test_leap_years_follow_the_gregorian_rule():
    assert [year for year in (1900, 2000, 2023, 2024, 0, -4, -100) if is_leap_year(year)] == [2000, 2024, 0, -4]
