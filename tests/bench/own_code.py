"""`make bench ARGS=--own`: what we wrote ourselves against the library that we would take otherwise, in turn.

- Reading: `RangeReader.columns` below Python, and `Consumer.consume` of confluent-kafka with the fields that a copy
  needs, from one topic.
- Signing: `Signer` and botocore's SigV4Auth, the request that uploads a part.
- A cheap test before a dear one: the search for numbers of too many digits in ordinary JSON, by the sample first
  (`has_long_number`) and by the regular expression alone.
"""

from __future__ import annotations

import json
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.converters.json.text import MAX_NUMBER_DIGITS, has_long_number
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.reading.batch_reader import RangeReader
from airflow_connect.stores.s3.http.signing import Keys, Signer, Unsigned
from tests.bench.topics import Load, fill

REPEAT = 5
READ_RECORDS = 1_000_000
SIGNATURES = 5_000
BATCHES, BATCH = 200, 10_000
_ALL_BYTES = re.compile(rb"[0-9]{%d}" % (MAX_NUMBER_DIGITS // 3)).search

Timed = tuple[float, float]
"""Seconds by the clock, CPU seconds of this process."""


def measure_own() -> int:
    """Print the table; 1 if a reader did not read every record."""
    print(f"{'what':44}{'ours':>14}{'library':>14}{'ours / library':>16}")
    problem = _reading()
    _signing()
    _digits()
    return int(problem)


def _reading() -> bool:
    load = Load(10, 24, READ_RECORDS)
    with (
        tempfile.TemporaryDirectory(prefix="airflow-connect-bench-") as folder,
        KafkaBroker.start(Path(folder)) as kafka,
    ):
        fill(kafka.bootstrap, load, 0, lambda done: None)
        settings = {"bootstrap.servers": kafka.bootstrap}
        found: set[int] = set()
        ours, library = _in_turn(
            lambda: found.add(_read_ours(settings, load)), lambda: found.add(_read_library(settings, load))
        )
    rates = [READ_RECORDS / median[0] for median in (ours, library)]
    _row("reading a topic, records/s", *rates)
    _row("the same, CPU s per million records", ours[1], library[1], digits=2)
    if found != {READ_RECORDS}:
        print(f"  FAILED records read: {sorted(found)} of {READ_RECORDS:,}")
    return found != {READ_RECORDS}


def _read_ours(settings: dict[str, str], load: Load) -> int:
    ranges = [OffsetRange(load.topic, n, 0, load.records // load.partitions) for n in range(load.partitions)]
    return sum(len(batch) for batch in RangeReader(settings, ranges).columns())


def _read_library(settings: dict[str, str], load: Load) -> int:
    own = {
        "group.id": "bench",
        "enable.auto.commit": False,
        "fetch.max.bytes": 50 << 20,
        "queued.min.messages": 100_000,
    }
    consumer = Consumer({**settings, **own})
    consumer.assign([Place(load.topic, n, 0) for n in range(load.partitions)])
    found: list[object] = []
    count = 0
    while count < load.records:
        messages = consumer.consume(10_000, 10.0)
        found = [(m.partition(), m.offset(), m.timestamp(), m.key(), m.value(), m.headers()) for m in messages]
        count += len(found)
        if not messages:
            break
    consumer.close()
    return count


def _signing() -> None:
    keys, token = Keys("AKIDEXAMPLE", "secret"), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    request = Unsigned("PUT", "bucket.s3.eu-central-1.amazonaws.com", "/topics/orders/part", "partNumber=1", {}, token)
    signer = Signer("eu-central-1")
    library = SigV4Auth(Credentials(keys.access_key_id, keys.secret_access_key), "s3", "eu-central-1")

    def sign_library() -> None:
        for _ in range(SIGNATURES):
            headers = {"x-amz-content-sha256": token}
            library.add_auth(AWSRequest("PUT", f"https://{request.host}{request.path}?{request.query}", headers))

    def sign_ours() -> None:
        for _ in range(SIGNATURES):
            signer.headers(request, keys)

    ours, theirs = _in_turn(sign_ours, sign_library)
    _row("signing a request, CPU µs", ours[1] / SIGNATURES * 1e6, theirs[1] / SIGNATURES * 1e6, digits=1)


def _digits() -> None:
    batches = [b"\n".join(_ordinary(BATCH, seed)) for seed in range(4)]
    passed = sum(has_long_number(batch) for batch in batches)
    ours, theirs = _in_turn(lambda: _each(has_long_number, batches), lambda: _each(_ALL_BYTES, batches))
    records = BATCH * BATCHES
    _row("numbers of too many digits, CPU ns a record", ours[1] / records * 1e9, theirs[1] / records * 1e9, digits=0)
    print(f"  {passed} of {len(batches)} batches of ordinary records are read as a whole after the sample.")


def _each(search: Callable[[bytes], object], batches: list[bytes]) -> None:
    for number in range(BATCHES):
        search(batches[number % len(batches)])


def _ordinary(count: int, seed: int) -> Iterable[bytes]:
    """Records as people have them: prices, coordinates, times and telephone numbers, a digit in most places."""
    some = random.Random(seed)
    for number in range(count):
        yield json.dumps(
            {
                "id": 10**12 + number,
                "price": round(some.uniform(1, 99_999), 2),
                "at": f"2026-11-{some.randint(10, 28)}T{some.randint(10, 23)}:{some.randint(10, 59)}:00.123456Z",
                "place": [some.uniform(-90, 90), some.uniform(-180, 180)],
                "phone": f"+49{some.randint(10**9, 10**10)}",
            }
        ).encode()


def _in_turn(ours: Callable[[], object], library: Callable[[], object]) -> tuple[Timed, Timed]:
    """Medians of both, which take turns, so that they see the same load of the machine."""
    times: tuple[list[Timed], list[Timed]] = ([], [])
    for _ in range(REPEAT):
        for kept, call in zip(times, (ours, library), strict=True):
            clock, cpu = time.perf_counter(), time.process_time()
            call()
            kept.append((time.perf_counter() - clock, time.process_time() - cpu))
    first, second = ((statistics.median(t[0] for t in kept), statistics.median(t[1] for t in kept)) for kept in times)
    return first, second


def _row(what: str, ours: float, library: float, digits: int = 0) -> None:
    print(f"{what:44}{ours:>14,.{digits}f}{library:>14,.{digits}f}{ours / library:>16.2f}", flush=True)
