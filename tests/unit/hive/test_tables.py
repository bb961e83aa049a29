"""Where files stand in tables, and names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.errors import ConfigError, DataError
from airflow_connect.hive.tables import (
    NULL_PARTITION,
    Partition,
    file_partition,
    is_same_location,
    partition_column,
    table_name,
)
from airflow_connect.layout.names.escaping import escape


def test_pairs_at_the_end_of_a_directory_are_the_partition():
    path = file_partition("a=b/topics/orders/year=2024/month=05/orders+0+0+9.avro")
    assert path.directory == "a=b/topics/orders"
    assert path.topic == "orders"
    assert path.partition == "a=b/topics/orders/year=2024/month=05"
    assert (path.names, path.values) == (("year", "month"), ("2024", "05"))


@given(st.text(min_size=1))
def test_value_of_a_partition_is_the_value_of_the_field(value):
    assert file_partition(f"topics/t/f={escape(value)}/t+0+0+0.json").values == (value,)


def test_empty_value_is_hives_null_and_nested_names_lose_their_dots():
    path = file_partition("topics/t/Outer.Inner=/t+0+0+0.json")
    assert (path.names, path.values) == (("outer_inner",), (NULL_PARTITION,))
    assert partition_column("a-b") == "a_b"


def test_directory_without_pairs_is_refused():
    with pytest.raises(DataError, match="name=value") as refused:
        file_partition("topics/t/2024/05/t+0+0+0.json")
    assert refused.value.code == "hive.partition"


def test_partition_is_called_as_the_metastore_calls_it():
    partition = Partition(("São Paulo", "10:30/x=1%"), "file:///x")
    assert partition.name(("city", "at")) == "city=São Paulo/at=10%3A30%2Fx%3D1%25"


@pytest.mark.parametrize(
    ("pattern", "topic", "name"),
    [
        ("${topic}", "orders", "orders"),
        ("${topic}", "shop.Orders-v1", "shop_orders_v1"),
        ("raw_${topic}_x", "a.b", "raw_a_b_x"),
    ],
)
def test_table_is_called_after_the_topic_in_hives_characters(pattern, topic, name):
    assert table_name(pattern, topic) == name


def test_table_name_without_a_letter_is_refused():
    with pytest.raises(ConfigError, match="no letter or digit") as refused:
        table_name("${topic}", "..-")
    assert refused.value.config_path == "hive.table.name"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("file:/a/b", "file:///a//b/", True),
        ("hdfs://name:8020/t", "hdfs://NAME:8020/t/", True),
        ("hdfs://name:8020/t", "hdfs://other:8020/t", False),
        ("hdfs://name/t", "hdfs://name/t2", False),
        ("", "hdfs://name/t", False),
    ],
)
def test_urls_are_compared_by_what_they_mean(one, other, same):
    assert is_same_location(one, other) is same
