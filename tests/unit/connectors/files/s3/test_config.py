from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.config.config_def import Password, Type
from airflow_connect.connectors.files.s3.config import S3SinkConfig
from airflow_connect.errors import ConfigError
from airflow_connect.runtime.config_files import read_connector_file

MINIMAL: dict[str, Any] = {
    "name": "meetups", "connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "meetups",
    "s3.bucket.name": "bucket", "flush.size": 1000, "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
}  # fmt: skip
HOURLY = {
    "partitioner.class": "TimeBasedPartitioner", "path.format": "'year'=YYYY", "partition.duration.ms": 3600000,
    "locale": "en-US", "timezone": "UTC",
}  # fmt: skip

KEYS_OF_CONFLUENT = """
s3.bucket.name s3.region s3.part.size s3.part.retries s3.retry.backoff.ms s3.compression.type s3.compression.level
s3.ssea.name s3.sse.customer.key s3.sse.kms.key.id s3.acl.canned s3.wan.mode s3.path.style.access.enabled store.url
s3.credentials.provider.class aws.access.key.id aws.secret.access.key s3.object.tagging
s3.object.tagging.key.value.pairs s3.object.behavior.on.tagging.error s3.proxy.url s3.proxy.user s3.proxy.password
s3.http.send.expect.continue s3.send.digest enable.conditional.writes max.files.scan.limit s3.elastic.buffer.enable
s3.elastic.buffer.init.capacity partitioner.max.open.files max.write.duration.ms behavior.on.null.values
report.null.values.to.dlq tombstone.encoded.partition rotate.file.on.partition.change s3.schema.partition.affix.type
json.decimal.format format.bytearray.extension format.bytearray.separator store.kafka.keys store.kafka.headers
keys.format.class headers.format.class format.class flush.size rotate.interval.ms rotate.schedule.interval.ms
schema.compatibility schemas.cache.config enhanced.avro.schema.support connect.meta.data retry.backoff.ms
shutdown.timeout.ms filename.offset.zero.pad.width avro.codec parquet.codec allow.optional.map.keys storage.class
topics.dir directory.delim file.delim partitioner.class partition.field.name partition.duration.ms path.format locale
timezone timestamp.extractor timestamp.field
"""


def config(**changes: Any) -> S3SinkConfig:
    return S3SinkConfig.from_config({**MINIMAL, **changes})


def error_of(raw: dict[str, Any]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        S3SinkConfig.from_config({**MINIMAL, **raw})
    return caught.value


def test_definition_has_every_key_of_confluents_sink() -> None:
    assert set(KEYS_OF_CONFLUENT.split()) <= S3SinkConfig.config_def().keys.keys()


def test_definition_every_key_is_documented_and_every_ignored_one_has_a_reason() -> None:
    for key in S3SinkConfig.config_def().keys.values():
        assert key.documentation.endswith("."), key.name
        assert key.group, key.name
        assert not key.ignored or key.ignored.endswith("."), key.name


@pytest.mark.parametrize("name", ["aws.secret.access.key", "s3.sse.customer.key", "s3.proxy.password"])
def test_definition_secrets_are_passwords(name: str) -> None:
    assert S3SinkConfig.config_def().keys[name].type is Type.PASSWORD


def test_from_config_minimal_has_confluents_defaults() -> None:
    sink = config()
    store = sink.store
    assert (store.bucket, store.region, store.endpoint, store.path_style) == ("bucket", "us-west-2", "", True)
    assert (store.part_size_bytes, store.part_retries, store.retry_backoff_ms) == (26214400, 3, 200)
    assert (store.conditional_writes, store.send_digest, store.object_tagging, store.acl) == (True, False, False, "")
    assert (sink.topics_dir, sink.directory_delim, sink.file_delim, sink.offset_pad_width) == (
        "topics",
        "/",
        "+",
        10,
    )
    assert sink.partitioner.path == "airflow_connect.layout.partitioners:DefaultPartitioner"
    assert sink.timestamp_extractor.path.endswith(":WallclockTimestampExtractor")
    assert (sink.schema_affix, sink.tombstone_directory, sink.is_time_based) == ("NONE", "tombstone", False)
    assert (sink.flush_size, sink.rotate_interval_ms, sink.rotate_schedule_interval_ms) == (1000, 0, 0)
    assert (sink.on_partition_change, sink.max_open_files, sink.schema_compatibility) == (True, 0, "NONE")
    assert (sink.on_null, sink.reports_nulls) == ("fail", True)
    assert sink.value_format.path == "airflow_connect.formats.json_lines:JsonFormat"
    assert (sink.key_format, sink.header_format, sink.bytes_separator) == (None, None, b"\n")
    assert (sink.avro_codec, sink.parquet_codec, sink.compression) == ("null", "snappy", "none")
    assert pickle.loads(pickle.dumps(store)) == store


def test_from_config_file_of_confluents_quickstart_is_taken_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "quickstart-s3.properties"
    file.write_text(
        "name=s3-sink\nconnector.class=io.confluent.connect.s3.S3SinkConnector\ntasks.max=1\ntopics=s3_topic\n"
        "s3.region=us-west-2\ns3.bucket.name=confluent-kafka-connect-s3-testing\ns3.part.size=5242880\nflush.size=3\n"
        "storage.class=io.confluent.connect.s3.storage.S3Storage\n"
        "format.class=io.confluent.connect.s3.format.avro.AvroFormat\n"
        "partitioner.class=io.confluent.connect.storage.partitioner.DefaultPartitioner\nschema.compatibility=NONE\n"
    )
    sink = S3SinkConfig.from_config(read_connector_file(file))
    assert (sink.store.part_size_bytes, sink.flush_size) == (5242880, 3)
    assert S3SinkConfig.config_def().unknown_keys(sink.raw) == []
    assert S3SinkConfig.config_def().ignored_keys(sink.raw) == []


def test_from_config_time_based_layout_reaches_its_attributes() -> None:
    sink = config(
        **HOURLY | {"timestamp.extractor": "RecordField", "timestamp.field": "a.b", "rotate.interval.ms": "60000",
        "rotate.schedule.interval.ms": 5, "partitioner.max.open.files": 9, "schema.compatibility": "backward",
        "s3.schema.partition.affix.type": "Prefix", "rotate.file.on.partition.change": "false", "timezone": "+01:00"},
    )  # fmt: skip
    assert sink.is_time_based
    assert (sink.path_format, sink.partition_duration_ms) == ("'year'=YYYY", 3600000)
    assert (sink.locale, sink.timezone, sink.timestamp_field, sink.schema_affix) == (
        "en-US",
        "+01:00",
        "a.b",
        "PREFIX",
    )
    assert sink.timestamp_extractor.path.endswith(":RecordFieldTimestampExtractor")
    assert (sink.rotate_interval_ms, sink.rotate_schedule_interval_ms, sink.max_open_files) == (60000, 5, 9)
    assert (sink.schema_compatibility, sink.on_partition_change) == ("BACKWARD", False)


def test_from_config_formats_of_keys_and_headers_need_their_switch() -> None:
    sink = config(**{"store.kafka.keys": "true", "store.kafka.headers": True, "headers.format.class": "JsonFormat"})
    assert sink.key_format is not None and sink.key_format.path == "airflow_connect.formats.avro:AvroFormat"
    assert sink.header_format is not None and sink.header_format.path.endswith("json_lines:JsonFormat")


def test_from_config_separator_of_raw_bytes_keeps_its_blanks() -> None:
    assert config(**{"format.bytearray.separator": " \t"}).bytes_separator == b" \t"
    assert config(**{"format.bytearray.separator": ""}).bytes_separator == b""


def test_from_config_store_settings_reach_their_attributes() -> None:
    store = config(
        **{"store.url": "http://127.0.0.1:9000", "s3.region": "anywhere", "s3.acl.canned": "private",
        "s3.ssea.name": "aws:kms", "s3.sse.kms.key.id": "k", "s3.object.tagging": True,
        "s3.object.tagging.key.value.pairs": "team:data, cost:1:2", "s3.object.behavior.on.tagging.error": "FAIL",
        "aws.access.key.id": "id", "aws.secret.access.key": "geheim", "s3.send.digest": "true",
        "enable.conditional.writes": "false", "s3.proxy.url": "http://u:p%40ss@proxy:3128", "s3.part.retries": 0},
    ).store  # fmt: skip
    assert (store.endpoint, store.region, store.acl, store.sse_name) == (
        "http://127.0.0.1:9000",
        "anywhere",
        "private",
        "aws:kms",
    )
    assert store.extra_tags == (("team", "data"), ("cost", "1:2"))
    assert (store.fail_on_tagging_error, store.send_digest, store.conditional_writes) == (True, True, False)
    assert (store.credentials.access_key_id, store.credentials.secret_access_key) == ("id", "geheim")
    assert (store.proxy_url, store.proxy_user, store.proxy_password) == ("http://proxy:3128", "u", "p@ss")
    assert "geheim" not in repr(store) and "p@ss" not in repr(store)


def test_from_config_proxy_password_of_its_own_wins_over_the_url() -> None:
    store = config(**{"s3.proxy.url": "http://u:p@proxy", "s3.proxy.user": "v", "s3.proxy.password": "q"}).store
    assert (store.proxy_url, store.proxy_user, store.proxy_password) == ("http://proxy", "v", "q")


ROLE = {
    "s3.credentials.provider.class": "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider",
    "s3.credentials.provider.sts.role.arn": "arn:aws:iam::1:role/r",
    "s3.credentials.provider.sts.role.session.name": "s", "s3.credentials.provider.sts.role.external.id": "e",
}  # fmt: skip
CONNECTION = {
    "access_key_id": "conn", "secret_access_key": "cs", "session_token": "t", "region": "eu-west-1",
    "endpoint_url": "http://x:1", "role_arn": "arn:conn", "external_id": "ce",
}  # fmt: skip


def test_credentials_own_keys_win_over_the_connection() -> None:
    own = {"aws.access.key.id": "id", "aws.secret.access.key": "secret"}
    given = S3SinkConfig.from_config(MINIMAL | own, CONNECTION).store.credentials
    assert (given.access_key_id, given.session_token, given.role_arn, given.role_external_id) == ("id", "", "", "")


def test_credentials_connection_is_used_where_the_connector_has_none() -> None:
    sink = S3SinkConfig.from_config(MINIMAL, CONNECTION)
    given = sink.store.credentials
    assert (given.access_key_id, given.secret_access_key, given.session_token) == ("conn", "cs", "t")
    assert (given.role_arn, given.role_external_id) == ("arn:conn", "ce")
    assert (sink.store.region, sink.store.endpoint) == ("eu-west-1", "http://x:1")


def test_credentials_own_role_is_assumed_with_the_connections_keys() -> None:
    given = S3SinkConfig.from_config(MINIMAL | ROLE, CONNECTION).store.credentials
    assert (given.access_key_id, given.role_arn) == ("conn", "arn:aws:iam::1:role/r")
    assert (given.role_session_name, given.role_external_id) == ("s", "e")


def test_credentials_role_without_its_provider_class_is_not_assumed() -> None:
    raw = {k: v for k, v in ROLE.items() if not k.endswith("class")}
    assert config(**raw).store.credentials.role_arn == ""


@pytest.mark.parametrize(
    "name",
    ["software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
     "com.amazonaws.auth.DefaultAWSCredentialsProviderChain", "DefaultCredentialsProvider"],
)  # fmt: skip
def test_credentials_default_chain_of_both_sdks_is_known(name: str) -> None:
    assert config(**{"s3.credentials.provider.class": name}).store.credentials.role_arn == ""


PROVIDER = "s3.credentials.provider.class"
STS = "s3.credentials.provider.sts"
TAGS = "s3.object.tagging.key.value.pairs"
NOT_A_PLUGIN = "airflow_connect.errors:DataError"
POSITIVE = "Partition duration needs to be a positive."


@pytest.mark.parametrize(
    ("raw", "key", "text"),
    [
        ({"s3.bucket.name": ""}, "s3.bucket.name", "String must be non-empty"),
        ({"s3.region": "us-wst-2"}, "s3.region", "Value must be one of: af-south-1"),
        ({"s3.part.size": 5}, "s3.part.size", "Part size must be at least: 5242880 bytes (5MB)"),
        ({"s3.part.retries": -1}, "s3.part.retries", "Value must be at least 0"),
        ({"s3.compression.type": "zip"}, "s3.compression.type", "Value must be one of: none, gzip"),
        ({"s3.compression.level": 10}, "s3.compression.level", "Value must be no more than 9"),
        ({"s3.compression.type": "gzip", "format.class": "AvroFormat"}, "s3.compression.type", "JsonFormat and"),
        ({"s3.wan.mode": "true"}, "s3.wan.mode", "s3.path.style.access.enabled is true"),
        ({"s3.ssea.name": "AES"}, "s3.ssea.name", "String must be one of: , AES256, aws:kms"),
        ({"s3.ssea.name": "AES256", "s3.sse.customer.key": "short"}, "s3.sse.customer.key", "neither 32 bytes"),
        ({"s3.acl.canned": "everyone"}, "s3.acl.canned", "Value must be one of: private"),
        ({"store.url": "ftp://x"}, "store.url", "not an http or https address"),
        ({"aws.access.key.id": "x"}, "aws.secret.access.key", "aws.access.key.id is set but"),
        ({TAGS: "a"}, TAGS, "name:value"),
        ({TAGS: ",".join(f"{n}:x" for n in range(8))}, TAGS, "8 tags"),
        ({"s3.proxy.url": "http://:geheim@"}, "s3.proxy.url", "is not an address"),
        ({PROVIDER: "com.example.Mine"}, PROVIDER, "could not be found"),
        ({PROVIDER: NOT_A_PLUGIN}, PROVIDER, "boto3"),
        ({PROVIDER: "AwsAssumeRole"}, f"{STS}.role.arn", "Missing required"),
        ({f"{STS}.base.role.arn": "x"}, f"{STS}.base.role.arn", "not supported"),
        ({"storage.class": NOT_A_PLUGIN}, "storage.class", "is not a store of the S3 sink"),
        ({"behavior.on.null.values": "write"}, "behavior.on.null.values", "store.kafka.keys is false"),
        ({"store.kafka.headers": True, "headers.format.class": "ByteArray"}, "headers.format.class", "cannot hold"),
        ({"avro.codec": "zstd"}, "avro.codec", "String must be one of: null, deflate, snappy, bzip2"),
        ({"parquet.codec": "lzo"}, "parquet.codec", "String must be one of: none, snappy"),
        ({"schema.compatibility": "BACKWORD"}, "schema.compatibility", "NONE, BACKWARD, FORWARD, FULL"),
        ({"directory.delim": " "}, "directory.delim", "Value must be punctuation"),
        ({"file.delim": "x"}, "file.delim", "Value must be punctuation"),
        ({"timezone": "Europe/Zurch"}, "timezone", "The datetime zone id 'Europe/Zurch' is not recognised"),
        ({"timezone": "../etc"}, "timezone", "is not recognised"),
        ({"rotate.schedule.interval.ms": 1}, "timezone", "timezone configuration must be set when"),
        ({"partitioner.class": "FieldPartitioner"}, "partition.field.name", "partition.field.name is empty"),
        ({"partition.field.name": "a..b"}, "partition.field.name", "may not be empty"),
        ({"partition.field.name": "a,,b"}, "partition.field.name", "may not be empty"),
        ({**HOURLY, "partition.duration.ms": 0}, "partition.duration.ms", POSITIVE),
        ({**HOURLY, "partition.duration.ms": -1}, "partition.duration.ms", POSITIVE),
        ({**HOURLY, "path.format": "/"}, "path.format", "Path format cannot be empty."),
        ({**HOURLY, "locale": ""}, "locale", "Locale cannot be empty."),
        ({**HOURLY, "timezone": ""}, "timezone", "Timezone cannot be empty."),
        ({"partitioner.class": "Daily", "timezone": "UTC"}, "locale", "Locale cannot be empty."),
        ({"flush.size": "1e3"}, "flush.size", "Not a number of type INT"),
        ({"errors.deadletterqueue.topic.name": "meetups"}, "topics", "The DLQ topic 'meetups' may not be included"),
    ],
)  # fmt: skip
def test_from_config_wrong_value_names_key_and_expectation(raw: dict[str, Any], key: str, text: str) -> None:
    error = error_of(raw)
    assert error.config_path == key
    assert text in error.message
    assert error.suggestion
    assert "geheim" not in str(error)


def test_from_config_hourly_partitioner_needs_no_path_format() -> None:
    sink = config(**{"partitioner.class": "HourlyPartitioner", "locale": "de", "timezone": "Europe/Zurich"})
    assert sink.is_time_based


def test_from_config_virtual_host_style_with_acceleration_is_fine() -> None:
    assert config(**{"s3.wan.mode": "true", "s3.path.style.access.enabled": "false"}).store.wan_mode


def test_from_config_missing_keys_are_all_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        S3SinkConfig.from_config({"name": "x"})
    for key in ("connector.class", "s3.bucket.name", "format.class", "flush.size", "storage.class"):
        assert f'Missing required configuration "{key}" which has no default value.' in caught.value.message


def test_ignored_keys_of_a_live_connector_are_accepted_and_named() -> None:
    live = [
        "max.write.duration.ms", "s3.elastic.buffer.enable", "s3.elastic.buffer.init.capacity", "shutdown.timeout.ms",
        "schemas.cache.config", "s3.http.send.expect.continue", "max.files.scan.limit", "retry.backoff.ms",
    ]  # fmt: skip
    raw = MINIMAL | {
        name: "true" if S3SinkConfig.config_def().keys[name].type is Type.BOOLEAN else "5000" for name in live
    }
    assert S3SinkConfig.from_config(raw).store.bucket == "bucket"
    assert [name for name, _ in S3SinkConfig.config_def().ignored_keys(raw)] == live


def test_password_objects_in_the_configuration_are_taken() -> None:
    sink = config(**{"aws.access.key.id": "id", "aws.secret.access.key": Password("geheim")})
    assert sink.store.credentials.secret_access_key == "geheim"
    assert not re.search("geheim", repr(sink))
