"""The row of the search sink: a topic into an index of a real OpenSearch, each document counted and summed up there.

Two peers write the same bytes with the same ids: the bulk helper of the official client, and requests that were made
before the clock started, which is what the server itself takes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.bench.processes import TreeSampler, cpu_seconds
from tests.bench.topics import Load
from tests.devstack.opensearch import OpenSearchServer

STORE = "opensearch"
CLASS = "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector"
CONFIG = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "key.ignore": "true",
    "schema.ignore": "true",
    "read.timeout.ms": "60000",
}
PEERS = {"helper": "opensearch-py, parallel_bulk", "requests": "requests made in advance"}
_REPOSITORY = Path(__file__).resolve().parents[2]
_TYPES = {
    "id": "long", "user": "keyword", "event": "keyword", "amount": "double", "at": "date", "session": "keyword",
    "note": "text",
}  # fmt: skip
_WARM_RECORDS = 1_000_000
"""The server compiles while it runs. After a third of these documents, it still needs 1.3 times the CPU."""
_INDEX = {
    "settings": {"number_of_replicas": 0},
    "mappings": {"properties": {name: {"type": kind} for name, kind in _TYPES.items()}},
}


class _Node(OpenSearchServer):
    """Compiles with both compilers, as servers that run for long do: the devstack's start faster without the second."""

    def _flags(self) -> list[str]:
        return [*super()._flags(), "-XX:TieredStopAtLevel=4"]


class SearchServer:
    """The server, started when it is needed first."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        """`stack` stops it; its data lies in `folder`."""
        self._stack, self._folder = stack, folder
        self._server: OpenSearchServer | None = None
        self._is_warm = False

    def connector(self, index: str, load: Load) -> dict[str, str]:
        """Keys of a connector that writes into a new index."""
        if load.records >= _WARM_RECORDS and not self._is_warm:
            self._warm(replace(load, records=_WARM_RECORDS))
        self._create(index)
        return {
            "connector.class": CLASS,
            "connection.url": self._running.url,
            "external.resource.usage": "index",
            "topic.to.external.resource.mapping": f"{load.topic}:{index}",
        }

    def cpu_s(self) -> float:
        """CPU time of the server."""
        return cpu_seconds(self._running.pid)

    def check(self, index: str, records: int) -> tuple[int, str]:
        """Bytes of the index, and what is wrong: ids 0 to `records - 1` must be there once each. Deletes the index."""
        self._ask("POST", f"/{index}/_refresh")
        found = self._ask(
            "POST",
            f"/{index}/_search",
            {"size": 0, "track_total_hits": True, "aggs": {"ids": {"stats": {"field": "id"}}}},
        )
        size = self._ask("GET", f"/{index}/_stats/store")["_all"]["primaries"]["store"]["size_in_bytes"]
        self._ask("DELETE", f"/{index}")
        ids = found["aggregations"]["ids"]
        summed = (found["hits"]["total"]["value"], ids["min"], ids["max"], ids["sum"])
        expected = (records, 0, records - 1, records * (records - 1) / 2)
        return size, "" if summed == expected else f"documents, first, last and sum of ids are {summed}, not {expected}"

    def say_peers(self, load: Load, ours_per_s: float, show: Callable[[int], None]) -> str:
        """Write the same documents by both peers and print their figures; returns what went wrong."""
        path = self._written(load, show)
        problems = [problem for peer in PEERS if (problem := self._say_peer(peer, path, load, ours_per_s))]
        path.unlink()
        return "; ".join(problems)

    def _warm(self, load: Load) -> None:
        """Let the server compile what it runs: otherwise, whoever comes first pays for it."""
        path = self._written(load, lambda _: None)
        _, problem = self._run_peer("requests", path, load)
        path.unlink()
        if problem:
            raise RuntimeError(f"The warm-up of the search server failed: {problem}")
        self._is_warm = True

    def _written(self, load: Load, show: Callable[[int], None]) -> Path:
        """A file with id, space and document in each line."""
        path = self._folder / f"{load.topic}.ndjson"
        with path.open("wb") as file:
            for n, (partition, value, _) in enumerate(load.rows()):
                name = f"{load.topic}+{partition}+{n // load.partitions}"
                file.write(b"%s %s\n" % (name.encode(), value))
                if n % 20_000 == 0:
                    show(n)
        return path

    def _say_peer(self, peer: str, path: Path, load: Load, ours_per_s: float) -> str:
        before = self.cpu_s()
        told, problem = self._run_peer(peer, path, load)
        if problem:
            return f"{PEERS[peer]}: {problem}"
        server = self.cpu_s() - before
        rate, millions = load.records / told["seconds"], load.records / 1e6
        print(
            f"  peer: {PEERS[peer]}: {rate:,.0f} documents/s (here {ours_per_s / rate:.2f} times that),"
            f" CPU s/M {told['cpu_s'] / millions:.2f}, the server's {server / millions:.2f},"
            f" peak {int(told['peak_bytes']) >> 20} MB",
            flush=True,
        )
        return ""

    def _run_peer(self, peer: str, path: Path, load: Load) -> tuple[dict[str, float], str]:
        """Write a file by a peer, in a process of its own; returns its figures, and what went wrong."""
        index = f"peer-{peer}"
        self._create(index)
        command = [sys.executable, "-m", "tests.bench.search_peer", peer, self._running.url, index, str(path)]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_REPOSITORY) as process,
            TreeSampler(process.pid) as sampler,
        ):
            output, _ = process.communicate()
        if process.returncode:
            return {}, f"ended with {process.returncode}"
        _, problem = self.check(index, load.records)
        return {**json.loads(output), "peak_bytes": sampler.peak_bytes}, problem

    @property
    def _running(self) -> OpenSearchServer:
        if self._server is None:
            self._server = self._stack.enter_context(_Node.start(self._folder / "search", heap_mb=1024))
        return self._server

    def _create(self, index: str) -> None:
        self._ask("PUT", f"/{index}", _INDEX)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self._running.request(method, path, body)
        if status >= 300:
            raise RuntimeError(f"OpenSearch answered {method} {path} with {status}: {answer}")
        return answer
