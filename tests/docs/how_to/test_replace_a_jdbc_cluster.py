"""docs/how-to/replace-a-jdbc-connect-cluster.md: its configuration continues where Confluent's sink stopped."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.copies.jdbc_sink import jdbc_sink

pytestmark = pytest.mark.integration

PAGE = "docs/how-to/replace-a-jdbc-connect-cluster.md"
# What Confluent's sink creates for pk.mode=kafka.
TABLE = """CREATE TABLE "{0}" (
"__connect_topic" TEXT NOT NULL,
"__connect_partition" INT NOT NULL,
"__connect_offset" BIGINT NOT NULL,
"n" BIGINT NULL,
PRIMARY KEY("__connect_topic","__connect_partition","__connect_offset"))"""


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_configuration_of_the_page_continues_after_a_killed_worker(
    pytestconfig, kafka, postgresql_database, make_topic, produce
):
    page = (pytestconfig.rootpath / PAGE).read_text()
    (shown,), (query,) = blocks(page, "json"), blocks(page, "sql")
    topic = make_topic(2)
    produce(topic, [(n % 2, None, json.dumps({"n": n})) for n in range(20)])
    database = postgresql_database
    database.execute(TABLE.format(topic))
    with database.connected() as connection:  # the worker wrote five records of each partition, and committed three
        row = f"INSERT INTO \"{topic}\" VALUES ('{topic}', %s, %s, %s)"
        connection.exec_driver_sql(row, [(p, offset, 2 * offset + p) for p in range(2) for offset in range(5)])
    config = {key: value for key, value in json.loads(shown).items() if key != "name"}
    config.update({"topics": topic, "connection.url": database.jdbc_url})
    sink = jdbc_sink(kafka, database, topic)
    sink.config.update(config, **{"table.name.format": "${topic}", "fields.whitelist": ""})
    assert sink.offsets() == {}  # the coordinator of the group is there now
    sink.set_offsets({0: 3, 1: 3})

    refused = sink.try_run()
    assert refused.error["code"] == "database.constraint", refused.error
    written = dict(database.rows(query.replace('"orders"', f'"{topic}"').replace("'orders'", f"'{topic}'")))
    assert written == {0: 5, 1: 5}
    sink.set_offsets(written)
    report = sink.run()

    assert report.records == 10
    assert database.rows(f'SELECT n FROM "{topic}" ORDER BY n') == [(n,) for n in range(20)]
    assert sink.offsets() == {0: 10, 1: 10}
