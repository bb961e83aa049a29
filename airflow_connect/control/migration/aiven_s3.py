"""Aiven's S3 sink: its keys beside those of our S3 sink, as a suggestion. Nothing is translated.

Source: S3SinkConfig and the documentation of Aiven's cloud storage connectors, version 3.4. The connector itself could
not be run here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

AIVEN = "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector"
OURS = "io.confluent.connect.s3.S3SinkConnector"
SAME_MEANING: Mapping[str, str] = {
    "aws.s3.bucket.name": "s3.bucket.name",
    "aws.s3.region": "s3.region",
    "aws.s3.endpoint": "store.url",
    "aws.s3.part.size.bytes": "s3.part.size",
    "aws.access.key.id": "aws.access.key.id",
    "aws.secret.access.key": "aws.secret.access.key",
    "file.max.records": "flush.size",
    "file.compression.type": "s3.compression.type",
}
"""Aiven's key and ours. Defaults differ: see the migration page."""
FORMATS: Mapping[str, str] = {
    "jsonl": "io.confluent.connect.s3.format.json.JsonFormat",
    "parquet": "io.confluent.connect.s3.format.parquet.ParquetFormat",
    "avro": "io.confluent.connect.s3.format.avro.AvroFormat",
}
"""Values of `format.output.type` whose files hold the same values if `format.output.fields` is `value` alone."""
_ENVELOPE = "format.output.envelope"


def equivalents(config: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """Sentences about keys of a configuration of Aiven's S3 sink: the key and what stands for it here.

    Empty for every other class. No sentence has a value that may be a secret.
    """
    if config.get("connector.class") not in (AIVEN, AIVEN.rpartition(".")[2]):
        return
    yield "connector.class", f"This is Aiven's S3 sink. {OURS} does the same with other keys; --set gives them."
    for theirs, ours in SAME_MEANING.items():
        if theirs in config and theirs != ours:
            yield theirs, f"{ours} is the key here."
    if config.get("file.max.records", "0") == "0":
        yield "file.max.records", "Not limited there. flush.size, its key here, needs a number."
    form = config.get("format.output.type") or "csv"
    told = f"format.class={FORMATS[form]} is the key here." if form in FORMATS else "No format here has the same files."
    yield "format.output.type", f"The value is {form}. {told}"
    if form in FORMATS and not _is_value_alone(config):
        yield (
            "format.output.fields",
            ("Files here hold values only. store.kafka.keys and store.kafka.headers write files of their own."),
        )
    if "file.compression.type" not in config:
        yield (
            "file.compression.type",
            "Its default is gzip. The key here is s3.compression.type, with the default none.",
        )
    yield (
        "file.name.template",
        "Names here follow topics.dir, partitioner.class and file.delim; see the migration page.",
    )


def _is_value_alone(config: Mapping[str, str | None]) -> bool:
    return (config.get("format.output.fields") or "value") == "value" and config.get(_ENVELOPE) == "false"
