"""Keys for files of values: what cannot be meant is refused before a file is read."""

from __future__ import annotations

import pytest

from airflow_connect.connectors.restore.config import LocalRestoreConfig

IMPORT = {
    "mode": "GENERIC",
    "format.class": "CsvFormat",
    "store.url": "file:///data",
    "topics.dir": "files",
    "topic.regex.list": "t:.*",
}


def errors_of(**keys: str) -> dict[str, str]:
    found = LocalRestoreConfig.config_def().validate({**IMPORT, **keys})
    return {one.name: " ".join(one.errors) for one in found if one.errors}


@pytest.mark.parametrize(
    ("keys", "name", "told"),
    [
        ({"csv.quote.char": "44"}, "csv.quote.char", "csv.separator.char is the same character"),
        ({"csv.file.charset": "hex"}, "csv.file.charset", "Write the name of a character set"),
        ({"csv.file.charset": "no-such"}, "csv.file.charset", "Write the name of a character set"),
        ({"topic.regex.list": "__consumer_offsets:.*"}, "topic.regex.list", "is a topic of Kafka itself"),
    ],
)
def test_keys_that_cannot_be_meant_are_refused(keys: dict[str, str], name: str, told: str) -> None:
    found = errors_of(**keys)
    assert list(found) == [name]
    assert told in found[name]


def test_keys_of_usual_files_are_accepted() -> None:
    assert errors_of(**{"csv.separator.char": "59", "csv.file.charset": "ISO-8859-1"}) == {}
