"""The keys of the JDBC source, and the rules between them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_connect.api.config import plugins
from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
from airflow_connect.errors import ConfigError

BASE = {"connection.url": "jdbc:sqlite:/x", "topic.prefix": "db-", "mode": "bulk"}

CONFLUENT = {
    "connection.attempts": 3, "connection.backoff.ms": 10000, "dialect.name": "", "db.timezone": "UTC",
    "date.calendar.system": "LEGACY", "transaction.isolation.mode": "DEFAULT", "table.whitelist": [],
    "table.blacklist": [], "table.include.list": [], "table.exclude.list": [], "catalog.pattern": None,
    "schema.pattern": None, "table.types": ["TABLE"], "table.poll.interval.ms": 60000,
    "table.monitoring.startup.polling.limit.ms": 10000, "quote.sql.identifiers": "always",
    "incrementing.column.name": "", "timestamp.column.name": [], "incrementing.column.mapping": [],
    "timestamp.columns.mapping": [], "timestamp.initial": None, "timestamp.delay.interval.ms": 0,
    "timestamp.granularity": "connect_logical", "validate.non.null": True, "query": "", "query.masked": None,
    "query.suffix": "", "query.retry.attempts": -1, "numeric.mapping": None, "numeric.precision.mapping": False,
    "poll.interval.ms": 5000, "batch.max.rows": 1000, "max.buffer.size": 0, "poll.linger.ms": 5000,
    "jdbc.credentials.provider.class": "io.confluent.connect.jdbc.util.DefaultJdbcCredentialsProvider",
    "connection.user": None, "connection.password": None,
}  # fmt: skip


def test_every_key_of_confluent_is_known_with_its_default() -> None:
    defaults = JdbcSourceConfig.config_def().defaults()
    assert {name: defaults[name] for name in CONFLUENT} == CONFLUENT
    required = {name for name, key in JdbcSourceConfig.config_def().keys.items() if key.is_required}
    assert required == {"connection.url", "topic.prefix", "mode"}


@pytest.mark.parametrize("name", ["io.confluent.connect.jdbc.JdbcSourceConnector", "JdbcSourceConnector", "JdbcSource"])
def test_class_is_found_by_confluent_s_names(name: str) -> None:
    assert plugins.load_class(plugins.PluginKind.CONNECTOR, name).__name__ == "JdbcSourceConnector"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"mode": "cdc"}, "must be one of: bulk, timestamp, incrementing, timestamp"),
        ({"table.whitelist": "a", "table.blacklist": "b"}, "table.whitelist and table.blacklist are exclusive"),
        ({"table.whitelist": "a", "table.include.list": "b"}, "Cannot mix legacy and new configuration approaches"),
        ({"table.exclude.list": "b"}, "table.exclude.list cannot be used without table.include.list"),
        ({"table.include.list": "("}, "not a regular expression"),
        ({"query": "SELECT 1", "table.whitelist": "a"}, "Do not specify table filtering configs with 'query'"),
        ({"query": "SELECT 1", "query.masked": "SELECT 2"}, "cannot be set at the same time"),
        ({"mode": "timestamp"}, "Timestamp column configuration must be provided when using mode 'timestamp'"),
        (
            {"mode": "timestamp", "timestamp.column.name": "a", "timestamp.columns.mapping": ".*:[b]"},
            "Cannot use both timestamp.column.name and timestamp.columns.mapping",
        ),
        ({"mode": "incrementing", "query": "SELECT 1"}, "needs incrementing.column.name"),
        ({"mode": "timestamp", "timestamp.columns.mapping": "x:y"}, r"Write it as regex:\[column\|column\]"),
        ({"incrementing.column.mapping": "x"}, "Write it as regex:column"),
        ({"timestamp.lookback.ms": "5"}, "works only in mode timestamp"),
        ({"transaction.isolation.mode": "SQL_SERVER_SNAPSHOT"}, "can only be configured with a Sql Server Dialect"),
        ({"timestamp.granularity": "days"}, "must be one of"),
        ({"numeric.mapping": "worst_fit"}, "must be one of"),
        ({"batch.max.rows": "0"}, "must be at least 1"),
        ({"topic.prefix": ""}, "must be non-empty"),
        ({"table.types": ""}, "at least one type"),
    ],
)
def test_wrong_configuration_is_refused(more: Mapping[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        JdbcSourceConfig.from_config({**BASE, **more})


@pytest.mark.parametrize(
    ("query", "is_limited"),
    [
        ("SELECT * FROM a LIMIT 10", True),
        ("SELECT * FROM a ORDER BY id\nlimit\t10 OFFSET 2; -- end", True),
        ("SELECT * FROM a UNION SELECT * FROM b LIMIT(SELECT 5)", True),
        ("SELECT * FROM a FETCH FIRST 5 ROWS ONLY", True),
        ("SELECT * FROM a FETCH next ROW ONLY", True),
        ("(SELECT * FROM a) LIMIT 3", True),
        ("(SELECT * FROM a LIMIT 3)", True),
        ("SELECT * FROM a LIMIT +3", True),
        ("SELECT * FROM a LIMIT '3' -- end", True),
        ("SELECT * FROM a LIMIT /* few */ 3", True),
        ("SELECT * FROM a LIMIT greatest(1, 3)", True),
        ("SELECT * FROM a LIMIT ROWS EXAMINED 3", True),
        ("SELECT * FROM a /*!50000 LIMIT 3 */", True),
        ("SELECT * FROM a /*M! LIMIT 3 */", True),
        ("SELECT * FROM a LIMIT ALL", False),
        ("SELECT * FROM a LIMIT -1", False),
        ("SELECT a.limit + 1, b.x AS\n  limit -- 5\nFROM a", False),
        ("((SELECT * FROM a WHERE b IN (SELECT 1) LIMIT 3)); -- end", True),
        ("(SELECT * FROM a) UNION (SELECT * FROM b)", False),
        ("SELECT * FROM (SELECT * FROM a ORDER BY id LIMIT (3)) AS b", False),
        ("SELECT 'LIMIT 1', \"LIMIT 1\", `LIMIT 1`, $x$ LIMIT 1 $x$ FROM a -- LIMIT 1", False),
        ("SELECT it''s, 'it''s LIMIT 1' /* LIMIT\n1 */ FROM a", False),
        ("SELECT credit_limit, a.limit AS limit, b.limit, fetch FROM a", False),
    ],
)
def test_query_with_a_limit_is_refused_unless_all_rows_are_copied(query: str, is_limited: bool) -> None:
    """Confluent's connector appends its condition, so that the database refuses such a statement."""
    more = {"mode": "incrementing", "incrementing.column.name": "id"}
    for key in ("query", "query.masked"):
        JdbcSourceConfig.from_config({**BASE, key: query})
        if not is_limited:
            JdbcSourceConfig.from_config({**BASE, **more, key: query})
            continue
        with pytest.raises(ConfigError, match=r"has a LIMIT.*Move it to query\.suffix") as caught:
            JdbcSourceConfig.from_config({**BASE, **more, key: query})
        assert caught.value.config_path == key and "FROM a" not in str(caught.value)


@pytest.mark.parametrize(
    ("database", "query"),
    [
        ("mysql", r"SELECT * FROM a WHERE b = 'Joe\'s' LIMIT 5"),
        ("mariadb", r'SELECT * FROM a WHERE b = "5\" wide" LIMIT 5'),
        ("mysql", "SELECT * FROM a # it's all\nLIMIT 5"),
        ("mysql", "SELECT b$c$d FROM a WHERE e = 5--1 LIMIT 5"),
        ("postgresql", r"SELECT * FROM a WHERE b = E'Joe\'s' LIMIT 5"),
        ("postgresql", r"SELECT * FROM a WHERE b = 'C:\' LIMIT 5"),
        ("postgresql", "SELECT b$c$d FROM a LIMIT 5"),
        ("sqlite", "SELECT b$c$d FROM a WHERE e = '\\' LIMIT 5"),
    ],
)
def test_limit_after_a_text_that_only_its_database_writes_so_is_refused(database: str, query: str) -> None:
    """A backslash, a comment or a dollar of another database hid the LIMIT: rows after the first ones were lost."""
    url = {"sqlite": "jdbc:sqlite:/data/a.sqlite"}.get(database, f"jdbc:{database}://db/shop")
    more = {**BASE, "connection.url": url, "mode": "incrementing", "incrementing.column.name": "id"}
    with pytest.raises(ConfigError, match="has a LIMIT"):
        JdbcSourceConfig.from_config({**more, "query": query})
    JdbcSourceConfig.from_config({**more, "query": query.replace("LIMIT 5", "AND c = 'LIMIT 5'")})


@pytest.mark.parametrize(
    ("query", "is_limited"),
    [
        ("SELECT * FROM a WHERE ROWNUM() <= 10", True),
        ("(SELECT * FROM a WHERE b IN (1, 2) AND (10 >= rownum ( )))", True),
        ("SELECT * FROM a WHERE (ROWNUM()) NOT BETWEEN 10 AND 20", True),
        ("SELECT * FROM (SELECT * FROM a WHERE (ROWNUM() <= 10)) AS b", False),
        ("SELECT ROWNUM() AS n, rownum FROM a WHERE rownum <= 10 AND b = 'ROWNUM() <= 10'", False),
    ],
)
def test_query_of_mariadb_that_counts_its_rows_is_refused_unless_all_rows_are_copied(
    query: str, is_limited: bool
) -> None:
    base = {**BASE, "connection.url": "jdbc:mariadb://db/shop", "query": query}
    JdbcSourceConfig.from_config(base)
    more = {"mode": "incrementing", "incrementing.column.name": "id"}
    if not is_limited:
        JdbcSourceConfig.from_config({**base, **more})
        return
    with pytest.raises(ConfigError, match=r"has a condition with ROWNUM\(\).*Write a LIMIT into query\.suffix"):
        JdbcSourceConfig.from_config({**base, **more})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("OFFSET 1", "an OFFSET"),
        ("LIMIT 5 offset\n10 ROWS", "an OFFSET"),
        ("OFFSET (SELECT 1)", "an OFFSET"),
        ("LIMIT 1, 5", "an OFFSET"),
        ("LIMIT abs(1), 5", "an OFFSET"),
        ("LIMIT 5 OFFSET +1", "an OFFSET"),
        ("LIMIT '5' OFFSET '1' -- end", "an OFFSET"),
        ("OFFSET +1", "an OFFSET"),
        ("OFFSET '1'", "an OFFSET"),
        ("OFFSET abs(-1)", "an OFFSET"),
        ("/*!50000 LIMIT 1,5 */", "an OFFSET"),
        ("TABLESAMPLE bernoulli (50) REPEATABLE (1)", "TABLESAMPLE"),
        ("LIMIT 5 FOR UPDATE OF a, b", ""),
        ("ORDER BY id, offset -- 1", ""),
        ("FOR UPDATE SKIP  locked", "SKIP LOCKED"),
        ("LIMIT 5", ""),
        ("LIMIT 0, 5", ""),
        ("OFFSET 0", ""),
        ("FOR SHARE -- SKIP LOCKED", ""),
    ],
)
def test_what_leaves_out_rows_is_refused_unless_all_rows_are_copied(text: str, found: str) -> None:
    mode = {"mode": "incrementing", "incrementing.column.name": "id"}
    queries = ({"query": f"SELECT * FROM a {text}"}, {"query.masked": f"(SELECT * FROM a {text})"})
    for more in ({"query.suffix": text}, *queries):
        JdbcSourceConfig.from_config({**BASE, **more})
        if found:
            with pytest.raises(ConfigError, match=rf"has {found}, which leaves out rows") as caught:
                JdbcSourceConfig.from_config({**BASE, **mode, **more})
            assert caught.value.config_path == next(iter(more))
        elif "LIMIT" not in text or "query.suffix" in more:
            JdbcSourceConfig.from_config({**BASE, **mode, **more})


def test_suffix_with_rows_examined_is_refused_unless_all_rows_are_copied() -> None:
    """MariaDB stops in the middle of a join or a sort: what it has found until then need not be the first rows."""
    more = {"query.suffix": "LIMIT 10 ROWS  EXAMINED 100"}
    JdbcSourceConfig.from_config({**BASE, **more})
    with pytest.raises(ConfigError, match="has LIMIT ROWS EXAMINED, which leaves out rows"):
        JdbcSourceConfig.from_config({**BASE, **more, "mode": "incrementing", "incrementing.column.name": "id"})


@pytest.mark.parametrize("suffix", ["LIMIT 0", "limit\n00 -- end", "FETCH FIRST 0 ROWS ONLY", "LIMIT 0 FOR SHARE"])
def test_limit_of_no_rows_is_refused_unless_all_rows_are_copied(suffix: str) -> None:
    mode = {"mode": "incrementing", "incrementing.column.name": "id"}
    JdbcSourceConfig.from_config({**BASE, "query.suffix": suffix})
    with pytest.raises(ConfigError, match=r"query\.suffix limits a run to 0 rows") as caught:
        JdbcSourceConfig.from_config({**BASE, **mode, "query.suffix": suffix})
    assert caught.value.config_path == "query.suffix"


@pytest.mark.parametrize(
    "suffix", ["LIMIT 10", "limit\n1 -- end", "FETCH FIRST 10 ROWS ONLY", "LIMIT 0, 5", "LIMIT (5)"]
)
def test_limit_that_the_rows_of_the_look_back_would_use_up_is_refused(suffix: str) -> None:
    """Each run read the same rows of the window again, and none after them."""
    mode = {"mode": "timestamp", "timestamp.column.name": "changed", "query.suffix": suffix}
    JdbcSourceConfig.from_config({**BASE, **mode})
    with pytest.raises(ConfigError, match=r"query\.suffix has a LIMIT, and timestamp\.lookback\.ms is set") as caught:
        JdbcSourceConfig.from_config({**BASE, **mode, "timestamp.lookback.ms": "1000"})
    assert caught.value.config_path == "query.suffix"
    JdbcSourceConfig.from_config({**BASE, **mode, "timestamp.lookback.ms": "1000", "query.suffix": "FOR SHARE"})


def test_databases_that_are_not_read_yet_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *a: object())
    with pytest.raises(ConfigError, match="does not read mssql yet"):
        JdbcSourceConfig.from_config({**BASE, "connection.url": "jdbc:sqlserver://db;databaseName=x"})


def test_columns_by_table_take_the_first_pattern_that_matches() -> None:
    config = JdbcSourceConfig.from_config(
        {
            **BASE, "mode": "timestamp+incrementing",
            "timestamp.columns.mapping": r"shop\.public\.a.*:[x|y], .*:[z]",
            "incrementing.column.mapping": r".*\.(b|c):nr",
        }
    )  # fmt: skip
    assert config.timestamp_columns("shop.public.abc") == ("x", "y")
    assert config.timestamp_columns("shop.public.b") == ("z",)
    assert config.incrementing_column("shop.public.b") == "nr" and config.incrementing_column("shop.public.a") == ""


def test_old_numeric_key_counts_without_the_new_one() -> None:
    old = {**BASE, "numeric.precision.mapping": "true"}
    assert JdbcSourceConfig.from_config(old).numeric_mapping == "precision_only"
    assert JdbcSourceConfig.from_config({**old, "numeric.mapping": "none"}).numeric_mapping == "none"


def test_form_shows_columns_only_in_modes_that_use_them() -> None:
    values = {
        v.name: v
        for v in JdbcSourceConfig.config_def().validate({**BASE, "mode": "timestamp", "timestamp.column.name": "a"})
    }
    assert values["timestamp.column.name"].visible and not values["incrementing.column.name"].visible


def test_masked_query_is_in_no_representation() -> None:
    config = JdbcSourceConfig.from_config({**BASE, "query.masked": "SELECT hush1", "connection.password": "hush2"})
    assert config.query == "SELECT hush1" and "hush" not in repr(config)
