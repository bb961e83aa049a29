"""Kill rounds of files of values: restored to their partitions, and imported with any names."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from tests.crash.restore_rounds import PARTITIONS, RestoreRound
from tests.support.copies.restore import stored

MOST_LINES = 120
CONFIG = {
    "format.class": "JsonFormat",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
DIVIDED = {**CONFIG, "format.class": "ParquetFormat", "split.bytes": "400", "accept.loss": "order"}
RESTORED = {**CONFIG, "accept.loss": "timestamp,key,headers"}


@dataclass
class ValueRound(RestoreRound):
    """Files of a sink that has stored values."""

    lines: dict[int, list[bytes]] = field(default_factory=dict)

    def _produce(self) -> None:
        folder = self.restore.folder / "topics" / "t"
        for partition in range(PARTITIONS):
            place = folder / f"partition={partition}"
            place.mkdir(parents=True, exist_ok=True)
            files = self.chance.randint(0, 3)
            if partition == PARTITIONS - 1 and partition not in self.ends:
                files = max(1, files)  # A topic gets as many partitions as its files show when it is created.
            for _ in range(files):
                start = self.ends.get(partition, 0)
                lines = self._lines()
                (place / f"t+{partition}+{start:010d}.json").write_bytes(b"".join(b"%s\n" % line for line in lines))
                self.lines.setdefault(partition, []).extend(lines)
                self.ends[partition] = start + len(lines) + self.chance.choice([0, 2])

    def _lines(self) -> list[bytes]:
        first = self.written
        self.written += self.chance.randint(1, MOST_LINES)
        return [b'{"n":%d}' % number for number in range(first, self.written)]

    def _check(self) -> None:
        found: dict[int, list[bytes | None]] = {}
        for one in stored(self.restore.bootstrap, self.restore.target) if self.written else ():
            found.setdefault(one.partition, []).append(one.value)
        assert found == self.lines, self.story


@dataclass
class ImportRound(ValueRound):
    """Files with any names, which may sort before those that are imported."""

    files: list[list[bytes]] = field(default_factory=list)

    def _produce(self) -> None:
        place = self.restore.folder / "topics" / "inbox"
        place.mkdir(parents=True, exist_ok=True)
        for _ in range(self.chance.randint(0, 4)):
            lines = self._lines()
            (place / f"{self.chance.random()}.json").write_bytes(b"".join(b"%s\n" % line for line in lines))
            self.files.append(lines)

    def _check(self) -> None:
        found = [one.value for one in stored(self.restore.bootstrap, self.restore.target)] if self.written else []
        assert sorted(map(bytes, found)) == sorted(line for file in self.files for line in file), self.story  # type: ignore[arg-type]
        at = {value: number for number, value in enumerate(found)}
        assert all([at[line] for line in file] == sorted(at[line] for line in file) for file in self.files), self.story


@dataclass
class DividedRound(ImportRound):
    """Files of Parquet that are divided among tasks: only the rows of a row group are sure to keep their order."""

    def _produce(self) -> None:
        place = self.restore.folder / "topics" / "inbox"
        place.mkdir(parents=True, exist_ok=True)
        for _ in range(self.chance.randint(0, 3)):
            schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
            with pq.ParquetWriter(place / f"{self.chance.random()}.parquet", schema) as writer:
                for _ in range(self.chance.randint(1, 9)):
                    lines = self._lines()
                    writer.write_table(pa.table([[int(line[5:-1]) for line in lines]], schema=schema))
                    self.files.append(lines)
