"""Kafka's own file connectors through the plugin host: lines in, lines out, and a second run that goes on."""

from __future__ import annotations

import pytest

from airflow_connect.jvm.frames import encode
from airflow_connect.jvm.host import PluginHost
from tests.integration.jvm.hosting import STRING, frame_of, replies, values

pytestmark = pytest.mark.integration

FILE = "org.apache.kafka.connect.file.FileStream"


def read(config: dict[str, str], offsets: list[list[dict]]) -> tuple[list[str | None], list[list[dict]]]:
    """One run of the source: its lines, and where it has ended."""
    with PluginHost.start([], is_driver=True, heap_mb=128) as host:
        plan = host.call("plan", config=config, max_tasks=1, offsets=offsets).result
        (task,) = plan["tasks"]
        request = {"config": config, "task": task, "task_class": plan["task_class"], "task_id": 0, "offsets": offsets}
        host.call("source", **request)
        frames = list(replies(host, empty_polls=1))  # each takes a second
        for frame in frames:
            assert host.call("ack", frame=frame.result["frame"]).result == {"warnings": []}
        assert host.close(call_timeout_s=0.2) == []
    return values(frames), frames[-1].result["offsets"] if frames else offsets


def test_source_reads_lines_and_goes_on_where_it_was(tmp_path):
    file = tmp_path / "lines.txt"
    file.write_text("".join(f"line {number}\n" for number in range(5000)))
    config = {"name": "files", "connector.class": f"{FILE}SourceConnector", "file": str(file), "topic": "lines"}
    config |= {"key.converter": STRING, "value.converter": STRING}
    lines, offsets = read(config, [])
    assert lines == [f"line {number}" for number in range(5000)]
    assert offsets == [[{"filename": str(file)}, {"position": file.stat().st_size}]]
    with file.open("a") as more:
        more.write("one more\nnot ended")
    lines, offsets = read(config, offsets)
    assert lines == ["one more"]
    assert read(config, offsets) == ([], offsets)


def test_sink_writes_lines_to_a_path_of_the_callers_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "out.txt"
    config = {"name": "files", "connector.class": f"{FILE}SinkConnector", "file": "out.txt", "topics": "t"}
    config |= {"key.converter": STRING, "value.converter": STRING}
    with PluginHost.start([], is_driver=True, heap_mb=128) as host:
        plan = host.call("plan", config=config, max_tasks=1, offsets=[]).result
        assert plan["kind"] == "sink"
        task = {"config": config, "task": plan["tasks"][0], "task_class": plan["task_class"], "task_id": 0}
        host.call("sink", assignment=[["t", 0]], **task)
        frame = encode(frame_of([(None, b"line %d" % number) for number in range(1200)]))
        assert host.call("put", frame.body, **frame.members).result["delivered"] == 1200
        assert host.call("pre_commit", offsets=[["t", 0, 1200]]).result["offsets"] == [["t", 0, 1200]]
        assert host.close() == []
    assert file.read_text().splitlines() == [f"line {number}" for number in range(1200)]
