"""The process of a peer of the search sink: writes a file with lines of id, space and document into an index.

Prints `{"seconds": ..., "cpu_s": ...}` as JSON: from the first document to the last answer, without imports and, for
prepared requests, without preparing them.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.helpers import parallel_bulk

CHUNK_RECORDS = 2000  # as many as the sink's default
THREADS = 5
_ONLY_ERRORS = "filter_path=errors,items.*.error"


def main() -> None:
    """Arguments: kind of peer, URL, index, file."""
    kind, url, index, path = sys.argv[1:]
    client = OpenSearch(url, timeout=120, maxsize=THREADS + 1)
    client.info()
    if kind == "requests":
        bodies = list(_bodies(Path(path)))
        started = time.monotonic(), time.process_time()
        with ThreadPoolExecutor(THREADS) as threads:
            for answer in threads.map(lambda body: _send(client, index, body), bodies):
                if answer["errors"]:
                    raise RuntimeError(f"A document was refused: {answer}")
    else:
        started = time.monotonic(), time.process_time()
        deque(
            parallel_bulk(client, _actions(index, Path(path)), thread_count=THREADS, chunk_size=CHUNK_RECORDS),
            maxlen=0,
        )
    print(json.dumps({"seconds": time.monotonic() - started[0], "cpu_s": time.process_time() - started[1]}))


def _lines(path: Path) -> Iterator[tuple[bytes, bytes]]:
    with path.open("rb") as file:
        for line in file:
            name, _, document = line.partition(b" ")
            yield name, document[:-1]


def _actions(index: str, path: Path) -> Iterator[dict[str, Any]]:
    """Documents as text, which the client passes on as they are."""
    for name, document in _lines(path):
        yield {"_index": index, "_id": name.decode(), "_source": document.decode()}


def _bodies(path: Path) -> Iterator[bytes]:
    made: list[bytes] = []
    for name, document in _lines(path):
        made.append(b'{"index":{"_id":"%s"}}\n%s\n' % (name, document))
        if len(made) == CHUNK_RECORDS:
            yield b"".join(made)
            made.clear()
    if made:
        yield b"".join(made)


def _send(client: OpenSearch, index: str, body: bytes) -> Any:
    return client.transport.perform_request(
        "POST",
        f"/{index}/_bulk?{_ONLY_ERRORS}",
        body=body,
        headers={"content-type": "application/x-ndjson"},
    )


if __name__ == "__main__":
    main()
