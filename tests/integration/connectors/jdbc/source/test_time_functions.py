"""Functions of queries and views that depend on the time of the run, or on a zone, which is UTC, are named."""

from __future__ import annotations

import pytest

from airflow_connect.connectors.jdbc.source.read.points_in_time import session_times
from airflow_connect.connectors.jdbc.source.read.time_functions import choices, local_functions, times_in_conditions
from tests.support.copies.jdbc_source import Copies

pytestmark = pytest.mark.integration
BERLIN = {"db.timezone": "Europe/Berlin"}
DAY = {"postgresql": "at::date", "mysql": "DATE(at)"}
ZONED = {"postgresql": "(at AT TIME ZONE 'Europe/Berlin')::date", "mysql": "DATE(CONVERT_TZ(at, '+00:00', '+01:00'))"}


@pytest.mark.parametrize("what", ["query", "query.masked", "view"])
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_day_of_a_point_in_time_that_is_one_of_utc_is_named(request, kind, what):
    """The row of New Year in Berlin had the last day of the year before, without a word."""
    database = request.getfixturevalue(f"{kind}_database")
    instant, zone = {"postgresql": ("timestamptz", "+01")}.get(database.dialect, ("timestamp NULL", ""))
    hour = "2026-01-01 00:30:00" if zone else "2025-12-31 23:30:00"  # The server of MariaDB is in UTC.
    database.execute(
        f"CREATE TABLE a (id int PRIMARY KEY, at {instant}, plain date)",
        f"INSERT INTO a VALUES (1, '{hour}{zone}', '2026-01-01')",
    )

    def notes_on(day, config, expected):
        statement = f"SELECT id, {day} AS day FROM a"
        database.execute("DROP VIEW IF EXISTS seen", f"CREATE VIEW seen AS {statement}")
        chosen = {"table.types": "VIEW", "table.whitelist": "seen"} if what == "view" else {what: statement}
        run = Copies({"connection.url": database.jdbc_url, "mode": "bulk", **chosen, **config}).run()
        assert [(str(r.value["day"]) if r.value["day"] is not None else None) for r in run.records] == [expected]
        return [note for note in run.notes if "depend on the time zone of the session" in note]

    dialect = database.dialect
    wrong, right = "20453", "20454"  # Days since 1970.
    (note,) = notes_on(DAY[dialect], BERLIN, wrong)
    assert note.startswith("The view " if what == "view" else "The query has functions")
    assert "(date). That zone is UTC here" in note
    assert notes_on(DAY[dialect], {}, wrong) == []
    assert notes_on(ZONED[dialect], BERLIN, right) == []
    assert notes_on("plain", BERLIN, right) == []
    if dialect == "postgresql":
        name = database.url.rpartition("/")[2]
        database.execute(f"ALTER DATABASE {name} SET timezone = 'Europe/Berlin'")
        assert len(notes_on(DAY[dialect], {}, wrong)) == 1


@pytest.mark.parametrize("what", ["query", "view"])
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_time_without_a_zone_that_becomes_a_point_in_time_is_named(request, kind, what):
    """Noon in New York was noon in UTC: such a row was before the offset, and missed without a word."""
    database = request.getfixturevalue(f"{kind}_database")
    instant, plain = ("timestamptz", "timestamp") if kind == "postgresql" else ("timestamp NULL", "datetime")
    database.execute(
        f"CREATE TABLE a (id int PRIMARY KEY, at {instant}, made {plain}, later {plain})",
        f"CREATE TABLE other (id int PRIMARY KEY, made {plain})",
        "INSERT INTO a VALUES (1, NULL, '2026-01-01 12:00:00', NULL)",
    )

    def notes_on(changed, zone, table="a"):
        statement = f"SELECT id, {changed} AS changed FROM {table}"
        database.execute("DROP VIEW IF EXISTS seen", f"CREATE VIEW seen AS {statement}")
        chosen = {"table.types": "VIEW", "table.whitelist": "seen"} if what == "view" else {what: statement}
        config = {"connection.url": database.jdbc_url, "mode": "bulk", "db.timezone": zone, **chosen}
        run = Copies(config).run()
        return [note for note in run.notes if "Where both meet" in note], [r.value["changed"] for r in run.records]

    new_york, noon_ms = "America/New_York", 1_767_268_800_000
    named_zone = (
        "COALESCE(at, made AT TIME ZONE 'America/New_York')"
        if kind == "postgresql"
        else "COALESCE(CONVERT_TZ(at, '+00:00', '-05:00'), made)"
    )
    (note,), (value,) = notes_on("COALESCE(at, made)", new_york)
    assert note.startswith("The view " if what == "view" else "The query has COALESCE, and reads columns")
    assert "(a). Where both meet" in note
    # What the note says: PostgreSQL makes a point in time of `made`, MariaDB a time without a zone of `at`.
    assert value == (noon_ms if kind == "postgresql" else noon_ms + 5 * 3_600_000)
    assert notes_on(named_zone, new_york) == ([], [noon_ms + 5 * 3_600_000])
    for changed, zone, table in (
        ("COALESCE(at, made)", "UTC", "a"),
        ("made", new_york, "a"),
        ("COALESCE(made, made)", new_york, "other"),
    ):
        assert notes_on(changed, zone, table)[0] == []


@pytest.mark.parametrize("chosen", [{}, {"query": "SELECT * FROM a"}], ids=["table", "query"])
def test_clock_of_sqlite_that_is_not_that_of_the_configured_zone_is_named(sqlite_database, chosen):
    """CURRENT_TIMESTAMP is UTC there: rows waited for hours, or those of the current second were missed."""
    sqlite_database.execute(
        "CREATE TABLE a (id int, at timestamp NOT NULL)",
        "INSERT INTO a VALUES (1, '2026-01-01 12:00:00'), (2, datetime('now', '+1 hour'))",
    )
    config = {"mode": "timestamp", "timestamp.column.name": "at", "validate.non.null": "false", **chosen}
    for zone, count in (("UTC", 0), ("America/Lima", 1)):
        run = Copies({"connection.url": sqlite_database.jdbc_url, "db.timezone": zone, **config}).run()
        assert run.ids() == [1]
        assert (
            len([n for n in run.notes if n.startswith("Sessions of the database are in UTC, but db.timezone")]) == count
        )


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("SELECT at::timestamp, at::time(0), x::DATE FROM a", ["date", "time", "timestamp"]),
        ("SELECT (at)::timestamp(3) without time zone FROM a", ["timestamp"]),
        ("SELECT CAST(at AS timestamp(6) without time zone), cast(at as Date ) FROM a", ["date", "timestamp"]),
        ("SELECT * FROM a WHERE d > now() - interval '1 day' AND e = CURRENT_DATE", ["current_date", "now"]),
        ("select date_format(`a`.`at`,'%Y') AS `y`,cast(`a`.`at` as datetime(6)) AS `d`", ["date_format", "datetime"]),
        (
            "SELECT at::timestamptz, at::timestamp with time zone, at::timestamp(3) with time zone, '2026-01-01'::date",
            [],
        ),
        ("SELECT CAST(at AS timestamp with time zone), d AS date, update(at), \"now\"(), 'now()' -- now()", []),
        ("SELECT (at AT TIME ZONE 'Europe/Berlin')::date FROM a", []),
    ],
)
def test_functions_that_depend_on_the_zone_are_found(statement, found):
    assert sorted(set(local_functions(statement))) == found


@pytest.mark.parametrize("what", ["query", "view"])
@pytest.mark.parametrize("kind", ["postgresql", "mariadb", "sqlite"])
def test_condition_that_depends_on_the_time_of_the_run_is_named(request, kind, what):
    """A row that becomes visible later has a number below the offset: it was missed, and no report said why."""
    database = request.getfixturevalue(f"{kind}_database")
    now = "datetime('now')" if kind == "sqlite" else "CURRENT_TIMESTAMP"
    database.execute(
        "CREATE TABLE a (id int PRIMARY KEY, since timestamp)",
        "INSERT INTO a VALUES (1, '2026-01-01 00:00:00'), (2, '2037-01-01 00:00:00'), (3, '2026-01-01 00:00:00')",
    )

    def run(condition, mode):
        statement = f"SELECT id, since FROM a{condition}"
        database.execute("DROP VIEW IF EXISTS seen", f"CREATE VIEW seen AS {statement}")
        chosen = {"table.types": "VIEW", "table.whitelist": "seen"} if what == "view" else {what: statement}
        config = {"mode": mode, "incrementing.column.name": "id", "validate.non.null": "false", **chosen}
        return Copies({"connection.url": database.jdbc_url, **config}).run()

    found = run(f" WHERE since < {now}", "incrementing")
    assert found.ids() == [1, 3]
    (note,) = found.notes
    assert f"has the time of the run in a condition ({'now' if kind == 'sqlite' else 'current_timestamp'})" in note
    assert run(f" WHERE since < {now}", "bulk").notes == []
    assert run(" WHERE since < '2030-01-01 00:00:00'", "incrementing").notes == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("SELECT * FROM a WHERE at > now() - interval '7 days'", ["now"]),
        ("SELECT * FROM a JOIN b ON b.day = CURRENT_DATE", ["current_date"]),
        ("SELECT id FROM a GROUP BY id HAVING max(at) < SYSDATE()", ["sysdate"]),
        ("SELECT * FROM a WHERE at < date('now', '-1 day')", ["now"]),
        ("SELECT now() AS loaded, current_date FROM a WHERE day = 'now()' AND known = 1 -- now()", []),
    ],
)
def test_times_in_conditions_are_found(statement, found):
    assert list(times_in_conditions(statement)) == found


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("SELECT id, COALESCE(name, '') AS name, changed FROM a", []),
        ("SELECT id, CASE WHEN name = 'x' THEN 1 ELSE 0 END AS f, changed FROM a", []),
        ("SELECT id, GREATEST(COALESCE(a.n, 0), b.n) AS n, a.changed FROM a JOIN b ON a.id = b.id", []),
        ("SELECT id, IF(n > 1, 'many', 'one') AS n, made, changed FROM a", []),
        ("SELECT id, COALESCE(Changed, made) AS at FROM a", ["COALESCE"]),
        ("SELECT id, COALESCE(a.changed, b.made) AS at FROM a, b", ["COALESCE"]),
        ("SELECT id, COALESCE(lower(name), (n)::text), COALESCE((n), (changed)) AS at FROM a", ["COALESCE"]),
        ('SELECT id, COALESCE("changed", "made") AS at FROM a', ["COALESCE"]),
        ("SELECT id, CASE WHEN n = 1 THEN CASE n WHEN 2 THEN 3 END ELSE made END AS at FROM a", ["CASE"]),
        ("SELECT id, COALESCE(now(), x) AS at FROM a", ["COALESCE"]),
        ("SELECT id, COALESCE(to_timestamp(n), x) AS at FROM a", ["COALESCE"]),
        ("SELECT id, COALESCE(n, 0), changed FROM a UNION SELECT id, n, made FROM a", ["COALESCE", "UNION"]),
        ("SELECT COALESCE(x, y) FROM (SELECT changed AS x, made AS y FROM a) AS t", ["COALESCE"]),
        ("SELECT COALESCE(x, y) FROM a AS t (id, x, y)", ["COALESCE"]),
    ],
)
def test_choices_between_other_values_than_times_are_not_named(statement, found):
    """Each run that copied rows said that the values of COALESCE(name, '') may be hours off."""
    assert list(choices(statement, "mysql" if "IF(" in statement else "postgresql", ["changed", "made"])) == found


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_choice_of_texts_is_not_named(request, kind):
    database = request.getfixturevalue(f"{kind}_database")
    stamp = "timestamptz" if kind == "postgresql" else "timestamp"
    database.execute(
        f"CREATE TABLE a (id int PRIMARY KEY, name varchar(9), born date, changed {stamp} NOT NULL)",
        "INSERT INTO a VALUES (1, NULL, '2000-01-01', '2026-01-01 00:00:00')",
    )
    query = "SELECT id, COALESCE(name, '') AS name, born, changed FROM a"
    copied = {"connection.url": database.jdbc_url, "query": query, "mode": "timestamp", **BERLIN}
    run = Copies({**copied, "timestamp.column.name": "changed"}).run()
    assert (run.ids(), run.notes) == ([1], [])


@pytest.mark.parametrize(
    ("statement", "database", "found"),
    [
        ("SELECT id, changed, MAX(changed), COUNT(changed) FROM a GROUP BY (changed)", "mysql", []),
        ("SELECT id, row_number() OVER (PARTITION BY x ORDER BY changed) FROM a", "mysql", []),
        ("SELECT id, DATE(changed), IF(n > 1, changed, NULL) FROM a", "mysql", []),
        ("SELECT * FROM (SELECT id, changed FROM a) AS b WHERE changed IN (SELECT changed FROM c)", "mysql", []),
        ("SELECT CONVERT_TZ(changed, '+00:00', '+01:00') + INTERVAL 1 DAY FROM a", "mysql", []),
        ("SELECT CONVERT_TZ(changed, '+00:00', '+01:00'), a.changed + INTERVAL 1 DAY FROM a", "mysql", ["+"]),
        ("select `a`.`changed` - interval 1 second AS `c` from `a`", "mysql", ["-"]),
        ("SELECT COALESCE(changed, NOW()) + INTERVAL 1 DAY FROM a", "mysql", ["+"]),
        ("SELECT x - coalesce (changed, x) FROM a", "mysql", ["-"]),
        ("SELECT ADDDATE(a.changed, 1), CONCAT(x, MAX(changed)) FROM a", "mysql", ["adddate", "concat"]),
        ("SELECT CAST(changed AS char), CONVERT(changed, char) FROM a", "mysql", ["cast", "convert"]),
        ("SELECT * FROM a WHERE changed >= '2026-01-01'", "mysql", ["a comparison with a text"]),
        ("SELECT * FROM a WHERE changed NOT BETWEEN '2026' AND '2027'", "mysql", ["a comparison with a text"]),
        ("SELECT * FROM a WHERE made > '2026-01-01' AND x > changed", "mysql", []),
        ("SELECT * FROM a WHERE changed > b.made", "mysql", ["a comparison with a column without a zone"]),
        ("SELECT changed + interval '1 day', changed::text, changed::timestamptz FROM a", "postgresql", []),
        ("SELECT made::timestamptz FROM a", "postgresql", ["timestamptz"]),
        ('SELECT CAST("made" AS timestamp with time zone) FROM a', "postgresql", ["timestamptz"]),
        ("SELECT * FROM a WHERE made AT TIME ZONE 'CET' > changed", "postgresql", []),
        ("SELECT * FROM a WHERE changed >= '2026-01-01 00:00:00+00'::timestamptz", "postgresql", []),
        ("SELECT * FROM a WHERE '2026-01-01T00:00:00Z' < changed", "postgresql", []),
        ("SELECT * FROM a WHERE timestamp '2026-01-01' < changed", "postgresql", ["a comparison with a text"]),
        ("SELECT * FROM a WHERE made = changed", "postgresql", ["a comparison with a column without a zone"]),
    ],
)
def test_points_in_time_that_are_taken_for_times_of_the_session_are_found(statement, database, found):
    assert sorted(set(session_times(statement, database, {"changed"}, {"made"}, {"date"}))) == found


@pytest.mark.parametrize("what", ["query", "view"])
@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_time_of_the_session_that_is_read_as_one_of_another_zone_is_named(request, kind, what):
    """Noon in Tokyo was noon in UTC in PostgreSQL; the day after a point in time was nine hours off in MariaDB."""
    database = request.getfixturevalue(f"{kind}_database")
    instant, local = ("timestamptz", "timestamp") if kind == "postgresql" else ("timestamp", "datetime")
    database.execute(
        f"CREATE TABLE a (id int PRIMARY KEY, at {instant} NOT NULL, made {local} NOT NULL)",
        "INSERT INTO a VALUES (1, '2026-01-01 03:00:00', '2026-01-01 12:00:00')",
    )
    computed = "made::timestamptz" if kind == "postgresql" else "at + INTERVAL 1 DAY"
    statement = f"SELECT id, {computed} AS computed FROM a"
    database.execute(f"CREATE VIEW seen AS {statement}")
    chosen = {"table.types": "VIEW", "table.whitelist": "seen"} if what == "view" else {"query": statement}
    config = {"connection.url": database.jdbc_url, "mode": "bulk", **chosen}
    (note,) = Copies({**config, "db.timezone": "Asia/Tokyo"}).run().notes
    assert f"({'timestamptz' if kind == 'postgresql' else '+'}). The database takes the times of the session" in note
    assert Copies(config).run().notes == []
