"""`airflow-connect dlq` on a real broker: what it shows, what a replay writes, and that it writes it once."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.cli.main import build_parser
from airflow_connect.cli.terminal import Terminal
from airflow_connect.kafka.admin.consumer_group import read_committed_offsets
from airflow_connect.kafka.clients.short_lived import admin_client
from tests.integration.runtime.sink.failures.test_errors import TOLERANT, is_settled, read_all
from tests.support.kafka_data import create_topic, delete_records, delete_topic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[4]
BASE_MS = 1_700_000_000_000


class Program:
    """The command line of one connector."""

    def __init__(self, sink, folder, **changes):
        self.sink = sink
        self.worker = folder / "worker.json"
        self.worker.write_text(json.dumps(sink.worker()))
        self.connector = folder / f"{sink.name}.json"
        self.connector.write_text(json.dumps(sink.connector(**changes)))

    def words(self, action, *options):
        return ["dlq", action, str(self.worker), str(self.connector), *options]

    def run(self, action, *options):
        """The outcome of `airflow-connect dlq ...`, in this process."""
        arguments: Namespace = build_parser().parse_args([*self.words(action, *options), "--json"])
        with open("/dev/null", "w") as nowhere:
            return arguments.command.run(arguments, Terminal(nowhere, nowhere, as_json=True))

    def result(self, action, *options):
        """What it did; fails the test with its own message."""
        queue = self.sink.config["errors.deadletterqueue.topic.name"]
        wait_until(lambda: is_settled(self.sink.kafka.bootstrap, queue), f"no transaction is open in {queue}")
        outcome = self.run(action, *options)
        assert outcome.exit_code == 0, outcome.errors
        return outcome.result["connectors"][0]


@pytest.fixture
def program(make_topic, produce, make_sink, unique_name, tmp_path):
    """A connector with 4 dead letters among 10 records in 2 partitions, and its command line."""
    topic = make_topic(partitions=2)
    rows = [
        (
            n % 2,
            f"k{n}",
            f"broken {n}" if n % 3 == 0 else f'{{"n": {n}}}',
            BASE_MS + n,
            [("mine", b"1"), ("mine", None)],
        )
        for n in range(10)
    ]
    produce(topic, rows)
    sink = make_sink(topic, errors_deadletterqueue_topic_name=f"{unique_name}-dlq", tasks_max="1", **TOLERANT)
    assert sink.run().dead_lettered == 4
    return Program(sink, tmp_path)


def replayed_records(sink, topic=""):
    """Records of the topic behind those that the test has produced: (partition, key, value, time, headers)."""
    found = read_all(sink.kafka.bootstrap, topic or sink.topic)
    return [
        (m.partition(), m.key(), m.value(), m.timestamp()[1], m.headers())
        for m in sorted(found, key=lambda m: (m.partition(), m.offset()))
        if topic or m.offset() >= 5
    ]


def expected(n, partition=None):
    own = [("mine", b"1"), ("mine", None)]
    return (n % 2 if partition is None else partition, f"k{n}".encode(), f"broken {n}".encode(), BASE_MS + n, own)


def test_replay_writes_the_original_records_back_to_their_partitions_once(program):
    first = program.result("replay")
    second = program.result("replay")

    assert (first["replayed"], first["topics"]) == (4, {program.sink.topic: 4})
    assert first["reasons"] == [{"stage": "VALUE_CONVERTER", "error": "airflow_connect.errors.DataError", "letters": 4}]
    assert (second["replayed"], second["passed_over"]) == (0, 0)
    assert replayed_records(program.sink) == [expected(0), expected(6), expected(3), expected(9)]


def test_replayed_records_that_fail_again_can_be_replayed_again(program):
    program.result("replay")
    assert program.sink.run().dead_lettered == 4

    again = program.result("replay")

    assert again["replayed"] == 4
    assert len(replayed_records(program.sink)) == 8


def test_replay_of_corrected_settings_brings_the_records_into_the_bucket(program, make_topic):
    target = make_topic()

    done = program.result("replay", "--to", target)

    assert done["topics"] == {target: 4}
    assert sorted(replayed_records(program.sink, target)) == [expected(n, 0) for n in (0, 3, 6, 9)]


def test_dry_run_says_the_same_and_writes_nothing(program):
    dry = program.result("replay", "--dry-run")

    assert dry["dry_run"] is True
    assert replayed_records(program.sink) == []
    done = program.result("replay")
    assert {**dry, "dry_run": False} == done


def test_letters_that_filters_pass_over_stay_available(program):
    late = program.result("replay", "--since", str(BASE_MS + 6))
    none = program.result("replay", "--error", "no such error")
    rest = program.result("replay", "--stage", "value_converter", "--error", "serialization")
    nothing = program.result("replay")

    assert [(r["replayed"], r["passed_over"]) for r in (late, none, rest, nothing)] == [(2, 2), (0, 2), (2, 0), (0, 0)]
    assert sorted(replayed_records(program.sink)) == [expected(0), expected(6), expected(3), expected(9)]


def test_letters_of_other_connectors_in_the_same_queue_stay(program, produce, tmp_path):
    other = program.sink.second()
    other.run()

    done = program.result("replay")
    theirs = Program(other, tmp_path).result("replay")

    assert (done["replayed"], done["others"]) == (4, 4)
    assert (theirs["replayed"], theirs["others"]) == (4, 4)


def test_repeated_letters_of_one_record_are_replayed_once(program, produce):
    """Kafka Connect writes a letter again when its worker dies before it commits."""
    queue = program.sink.config["errors.deadletterqueue.topic.name"]
    for letter in read_all(program.sink.kafka.bootstrap, queue):
        produce(queue, [(0, letter.key(), letter.value(), letter.timestamp()[1], letter.headers())])

    done = program.result("replay")

    assert (done["replayed"], done["repeated"]) == (4, 4)
    assert len(replayed_records(program.sink)) == 4
    assert program.result("replay")["replayed"] == 0


KILLED_BEFORE_COMMIT = """
import os, sys
from airflow_connect.kafka.writing.transactions import TransactionalWriter
def die(self, deadline):
    os.kill(os.getpid(), 9)
TransactionalWriter._commit = die
from airflow_connect.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_replay_that_is_killed_after_it_wrote_repeats_nothing(program):
    """The broker has the records of the dead replay in an open transaction; the next one aborts it."""
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_BEFORE_COMMIT, *program.words("replay")],
        check=False,
        cwd=ROOT,
        capture_output=True,
        timeout=120,
    )
    assert killed.returncode == -9, killed.stderr

    done = program.result("replay")

    assert done["replayed"] == 4
    assert replayed_records(program.sink) == [expected(0), expected(6), expected(3), expected(9)]
    assert program.sink.run().dead_lettered == 4


def replay_until_the_second_commit(program, monkeypatch, letters_per_step):
    """A replay that dies at its second transaction."""
    from airflow_connect.kafka.writing.transactions import TransactionalWriter
    from airflow_connect.runtime.driver.dead_letters import replay as dead_letter_replay

    monkeypatch.setattr(dead_letter_replay, "STEP_LETTERS", letters_per_step)
    commit, times = TransactionalWriter._commit, []

    def fail_second(self, deadline):
        times.append(1)
        if len(times) == 2:
            raise KeyboardInterrupt
        commit(self, deadline)

    monkeypatch.setattr(TransactionalWriter, "_commit", fail_second)
    with pytest.raises(KeyboardInterrupt):
        program.run("replay")
    monkeypatch.undo()


def test_many_letters_take_several_transactions_and_each_remembers(program, produce, monkeypatch):
    replay_until_the_second_commit(program, monkeypatch, letters_per_step=3)

    assert program.result("replay")["replayed"] == 1
    assert len(replayed_records(program.sink)) == 4


def test_letters_without_context_headers_need_a_topic(program, make_topic, tmp_path):
    sink = program.sink.second(errors_deadletterqueue_context_headers_enable="false")
    sink.config["errors.deadletterqueue.topic.name"] = f"{sink.name}-dlq"
    assert sink.run().dead_lettered == 4
    bare = Program(sink, tmp_path)
    target = make_topic()

    refused = bare.run("replay")
    done = bare.result("replay", "--to", target)

    assert refused.exit_code == 2
    assert f"{sink.name}-dlq-0@0 does not tell which topic it came from" in refused.errors[0]["message"]
    assert "--to" in refused.errors[0]["suggestion"]
    assert done["replayed"] == 4
    assert len(replayed_records(sink, target)) == 4


@pytest.mark.parametrize(
    ("changes", "options", "text"),
    [
        ({"errors_deadletterqueue_topic_name": None}, [], "has no dead letter queue"),
        ({"consumer_override_isolation_level": "read_uncommitted"}, [], "isolation.level=read_uncommitted"),
        ({}, ["--to", "no-such-topic-at-all"], "no-such-topic-at-all"),
        ({}, ["--to", "QUEUE"], "is the dead letter queue itself"),
    ],
)
def test_replay_that_could_not_be_right_is_refused(program, tmp_path, changes, options, text):
    queue = program.sink.config["errors.deadletterqueue.topic.name"]
    asked = Program(program.sink, tmp_path, **changes)

    outcome = asked.run("replay", *[queue if o == "QUEUE" else o for o in options])

    assert outcome.exit_code == 2
    assert text in outcome.errors[0]["message"]
    assert replayed_records(program.sink) == []


def test_show_tells_where_and_why_and_moves_nothing(program):
    shown = program.result("show")
    newest = program.result("show", "--limit", "1")
    oldest = program.result("show", "--limit", "1", "--from-beginning")
    some = program.result("show", "--since", str(BASE_MS + 6), "--connector", program.sink.name)
    none = program.result("show", "--connector", "somebody-else")

    letter = next(entry for entry in shown["letters"] if entry["value"] == "broken 3")
    assert shown["matching"] == 4
    assert letter["from"] == f"{program.sink.topic}-1@1"
    assert (letter["stage"], letter["connector"]) == ("VALUE_CONVERTER", program.sink.name)
    assert letter["class"] == "org.apache.kafka.connect.json.JsonConverter"
    assert (letter["timestamp"], letter["size_bytes"], letter["key"]) == (BASE_MS + 3, 10, "k3")
    assert letter["headers"] == ["mine", "mine"]
    assert newest["letters"] == shown["letters"][-1:]
    assert oldest["letters"] == shown["letters"][:1]
    assert {entry["value"] for entry in some["letters"]} == {"broken 6", "broken 9"}
    assert none["letters"] == []
    admin = admin_client({"bootstrap.servers": program.sink.kafka.bootstrap})
    queue = [TopicPartition(program.sink.config["errors.deadletterqueue.topic.name"], 0)]
    assert read_committed_offsets(admin, f"connect-{program.sink.name}-dlq-replay", queue) == {}


def test_show_of_a_queue_that_is_not_there_yet_shows_nothing(make_topic, make_sink, tmp_path, unique_name):
    sink = make_sink(make_topic(), errors_deadletterqueue_topic_name=f"{unique_name}-none", **TOLERANT)
    asked = Program(sink, tmp_path)

    assert asked.result("show")["letters"] == []
    assert asked.result("replay")["replayed"] == 0


def test_program_prints_a_table_and_the_exit_code_of_the_worst(program, tmp_path):
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({"name": "wrong"}))
    words = [sys.executable, "-m", "airflow_connect.cli", *program.words("show"), str(wrong)]

    ended = subprocess.run(words, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120)

    assert ended.returncode == 2
    lines = ended.stdout.splitlines()
    assert lines[0] == program.sink.name
    assert lines[1].strip().startswith("4 of 4 dead letters in ")
    assert lines[2].split() == ["OFFSET", "FROM", "STAGE", "CLASS", "CONNECTOR", "TIME", "SIZE", "VALUE", "MESSAGE"]
    assert "JsonConverter" in lines[3]
    assert "2023-11-14 22:13:20" in lines[3]
    assert program.sink.s3.secret_key not in ended.stdout + ended.stderr


def test_letters_passed_over_before_survive_a_replay_that_dies_between_its_steps(program, monkeypatch):
    program.result("replay", "--since", str(BASE_MS + 9))
    replay_until_the_second_commit(program, monkeypatch, letters_per_step=1)

    assert program.result("replay")["replayed"] == 2
    assert len(replayed_records(program.sink)) == 4


def test_letters_whose_partition_is_gone_are_counted_as_moved(program):
    delete_topic(program.sink.kafka.bootstrap, program.sink.topic)
    create_topic(program.sink.kafka.bootstrap, program.sink.topic, 1)

    done = program.result("replay")

    assert done["replayed"] == 4
    (note,) = done["notes"]
    assert note.startswith(f"2 letters were written to other partitions of {program.sink.topic}, because")


def test_letters_that_the_queue_has_lost_are_counted(program, make_topic):
    queue, target = program.sink.config["errors.deadletterqueue.topic.name"], make_topic()
    first = program.result("replay", "--to", target, "--since", str(BASE_MS + 9))
    delete_records(program.sink.kafka.bootstrap, queue, 0, 2)

    done = program.result("replay", "--to", target)

    assert (first["replayed"], first["passed_over"], first["notes"]) == (1, 3, [])
    assert done["replayed"] == 1
    assert done["notes"] == [f"{queue}-0 has lost 2 offsets that were not replayed: Kafka has deleted them."]


def test_position_beyond_the_end_of_the_queue_fails_with_both_readings(program, make_topic):
    queue, group = program.sink.config["errors.deadletterqueue.topic.name"], f"connect-{program.sink.name}-dlq-replay"
    consumer = Consumer({"bootstrap.servers": program.sink.kafka.bootstrap, "group.id": group})
    consumer.commit(offsets=[Place(queue, 0, 99)], asynchronous=False)
    consumer.close()

    outcome = program.run("replay")

    assert outcome.errors[0]["code"] == "replay.queue_shorter"
    assert f"{queue}-0 was replayed up to 99, and ends at 5" in outcome.errors[0]["message"]
    assert "--from-beginning" in outcome.errors[0]["suggestion"]
    assert replayed_records(program.sink) == []


def test_position_outlives_the_offsets_of_its_group(program):
    program.result("replay", "--since", str(BASE_MS + 6))
    group = f"connect-{program.sink.name}-dlq-replay"
    admin = admin_client({"bootstrap.servers": program.sink.kafka.bootstrap})
    admin.delete_consumer_groups([group])[group].result(10)

    rest = program.result("replay", "--dry-run")
    done = program.result("replay")
    nothing = program.result("replay")

    assert (rest["replayed"], done["replayed"]) == (2, 2)
    assert len(replayed_records(program.sink)) == 4
    (note,) = done["notes"]
    assert note.startswith(f"Group {group} has lost its offsets") and "--from-beginning" in note
    assert (nothing["replayed"], nothing["notes"]) == (0, [])
    assert program.sink.run().dead_lettered == 4, "the journal of the connector still reads its partition"


def test_everything_is_replayed_again_from_the_beginning_if_asked(program):
    program.result("replay")

    again = program.result("replay", "--from-beginning")

    assert (again["replayed"], again["notes"]) == (4, [])
    assert program.result("replay")["replayed"] == 0
    assert len(replayed_records(program.sink)) == 8


def test_queue_that_was_recreated_is_replayed_whole_and_named(program):
    queue, bootstrap = program.sink.config["errors.deadletterqueue.topic.name"], program.sink.kafka.bootstrap
    program.result("replay")
    delete_topic(bootstrap, queue)
    create_topic(bootstrap, queue, 1)
    assert program.sink.run().dead_lettered == 4

    again = program.result("replay")

    assert again["replayed"] == 4
    (note,) = again["notes"]
    assert note.startswith(f"The dead letter queue {queue} was recreated: its id is ")
    assert f"{queue}-0@" in note and "are gone" in note
    assert program.result("replay")["notes"] == []


def test_letter_of_a_record_from_another_queue_keeps_both_contexts_and_is_replayed_with_the_first(
    program, make_sink, tmp_path, unique_name
):
    queue, bootstrap = program.sink.config["errors.deadletterqueue.topic.name"], program.sink.kafka.bootstrap
    second = make_sink(queue, errors_deadletterqueue_topic_name=f"{unique_name}-second", tasks_max="1", **TOLERANT)
    assert second.run().dead_lettered == 4
    twice = read_all(bootstrap, f"{unique_name}-second")
    (tmp_path / "second").mkdir()

    done = Program(second, tmp_path / "second").result("replay")

    topics = [[value for name, value in letter.headers() if name == "__connect.errors.topic"] for letter in twice]
    assert topics == [[program.sink.topic.encode(), queue.encode()]] * 4
    assert done["topics"] == {queue: 4}
    found = sorted(read_all(bootstrap, queue), key=lambda letter: letter.offset())
    assert [letter.headers() for letter in found[4:]] == [letter.headers() for letter in found[:4]]
    assert program.result("replay")["replayed"] == 4


def test_letters_of_two_topics_of_one_name_are_both_replayed(program, produce):
    """The topic was recreated, so two records have failed at one place: they are not one letter twice."""
    topic = program.sink.topic
    delete_topic(program.sink.kafka.bootstrap, topic)
    create_topic(program.sink.kafka.bootstrap, topic, 2)
    produce(topic, [(0, "new", "broken anew", BASE_MS + 100)])
    assert program.sink.run(offsets_out_of_range="earliest", topics_dir="second").dead_lettered == 1

    done = program.result("replay")

    assert (done["replayed"], done["repeated"]) == (5, 0)
    values = sorted(m.value() for m in read_all(program.sink.kafka.bootstrap, topic))
    assert values == [b"broken 0", b"broken 3", b"broken 6", b"broken 9", b"broken anew", b"broken anew"]


def test_queue_that_was_deleted_is_named(program):
    queue = program.sink.config["errors.deadletterqueue.topic.name"]
    delete_topic(program.sink.kafka.bootstrap, queue)

    outcome = program.run("replay")

    (note,) = outcome.result["connectors"][0]["notes"]
    assert note.startswith(f"The dead letter queue {queue} does not exist")


@pytest.mark.parametrize(
    ("replaces", "changes"),
    [
        (True, {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id"}),
        (False, {"insert_mode": "insert"}),
    ],
    ids=["upserts", "inserts"],
)
def test_letters_that_come_after_newer_records_of_their_keys_are_named(program, sqlite_database, replaces, changes):
    """A row that a newer record had written got the value of the older one, and a deleted row came back."""
    config = {"connector_class": "io.confluent.connect.jdbc.JdbcSinkConnector", **changes}
    other = Program(program.sink, program.worker.parent, connection_url=sqlite_database.jdbc_url, **config)
    for action in (["--dry-run"], []):
        done = other.result("replay", *action)
        assert done["replayed"] == 4
        notes = [note for note in done["notes"] if note.startswith("4 letters come after the newer records of")]
        assert len(notes) == replaces
