"""Make what the DAG copies: topic and bucket `meetups`, with records in the topic. Does nothing the second time."""

from __future__ import annotations

import os
import time

from confluent_kafka.admin import AdminClient

from airflow_connect.cli.demo.meetups import PARTITIONS, TOPIC, rsvps
from airflow_connect.devstack.topic_data import create_topic, write_records

BUCKET = "meetups"
RECORDS = 60_000


def main() -> None:
    """Topic, records, bucket."""
    bootstrap = os.environ["BOOTSTRAP_SERVERS"]
    if TOPIC not in AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).topics:
        create_topic(bootstrap, TOPIC, PARTITIONS)
        written = write_records(bootstrap, TOPIC, rsvps(RECORDS, time.time_ns() // 1_000_000))
        print(f"{written} records in topic {TOPIC}")
    import boto3

    s3 = boto3.client("s3", endpoint_url=os.environ["S3_ENDPOINT"])
    if BUCKET not in {found["Name"] for found in s3.list_buckets()["Buckets"]}:
        s3.create_bucket(Bucket=BUCKET)
        print(f"bucket {BUCKET}")


if __name__ == "__main__":
    main()
