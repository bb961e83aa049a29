import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.connectors.files.hdfs.wal import Move, WalContent, read_wal
from tests.unit.connectors.files.hdfs.wal_bytes import MARK, SYNC, block, entry, log, vint

A, B, C = (Move(f"hdfs://n:1/topics//+tmp/t/{x}_tmp.avro", f"hdfs://n:1/topics/t/p=0/t+0+{x}.avro") for x in "123")


def test_bytes_of_a_log_as_they_stand_in_a_file():
    data = bytes.fromhex(
        "57414c00 6465666768696a6b6c6d6e6f70717273"
        "00000007 00000006 05 424547494e 00"
        "00000008 00000004 03 746d70 03 666978"
        "00000005 00000004 03 454e44 00".replace(" ", "")
    )
    assert data == log(block(("tmp", "fix")))
    assert read_wal(data) == WalContent(((Move("tmp", "fix"),),), (), is_whole=True)


def test_marks_between_entries_are_passed_over():
    data = log(SYNC, entry("BEGIN"), SYNC, entry(*A), entry("END"), SYNC)
    assert read_wal(data) == WalContent(((A,),), (), is_whole=True)


def test_blocks_that_hold_nothing_do_not_count():
    data = log(block(), block(A, B), block(), block())
    assert read_wal(data).blocks == ((A, B),)


def test_a_block_without_end_is_unfinished():
    assert read_wal(log(block(A), entry("BEGIN"), entry(*B))) == WalContent(((A,),), (B,), is_whole=True)


def test_a_block_that_another_begin_cuts_short_is_unfinished():
    data = log(entry("BEGIN"), entry(*A), entry("BEGIN"), entry(*B), entry("END"))
    assert read_wal(data) == WalContent(((B,),), (A,), is_whole=True)


def test_an_end_without_begin_ends_nothing():
    assert read_wal(log(entry(*A), entry("END"), block(B))).blocks == ((B,),)


@pytest.mark.parametrize(
    "data",
    [
        b"WAL",
        b"SEQ\0" + MARK,
        b"WAL\1" + MARK + block(A),
        log(b"\xff\xff\xff\xff" + bytes(16)),
        log(b"\0\0\0\3\0\0\0\4abc"),
        log(b"\0\0\0\4\0\0\0\2\1\xff\1a"),
        log(b"\0\0\0\2\0\0\0\1\1a"),
        log(b"\0\0\0\2\0\0\0\1\x88\0"),
        log(b"\0\0\0\1\0\0\0\0\0"),
    ],
)
def test_what_is_no_log_says_nothing(data):
    assert read_wal(data) == WalContent((), (), is_whole=False)


def test_an_empty_file_is_a_log_without_blocks():
    assert read_wal(b"") == WalContent((), (), is_whole=True)


@given(st.data())
def test_a_log_that_ends_anywhere_keeps_what_was_complete(data):
    moves = [Move("t" * n, "ü" * n) for n in (1, 127, 128, 70_000)]
    parts = [block(move) for move in moves]
    whole = log(*parts)
    cut = data.draw(st.integers(20, len(whole)))
    ends = [20 + sum(map(len, parts[: n + 1])) for n in range(len(parts))]
    content = read_wal(whole[:cut])
    assert content.blocks == tuple((move,) for move, end in zip(moves, ends, strict=True) if end <= cut)


@pytest.mark.parametrize(("number", "data"), [(127, "7f"), (128, "8f80"), (255, "8fff"), (256, "8e0100")])
def test_lengths_are_those_of_hadoop(number, data):
    assert vint(number) == bytes.fromhex(data)
