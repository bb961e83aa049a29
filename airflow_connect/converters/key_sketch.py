"""How many keys have records in several partitions: each task samples keys, and the driver compares the samples.

A sample holds the keys whose hashes are the smallest ones of a partition. All tasks use one hash, so a key that two
partitions have is in both samples if its hash is below the largest one of each (the "bottom-k sketch" of Cohen and
Kaplan, 2007). A partition with fewer keys than a sample holds has all of them there, and nothing is estimated.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from airflow_connect.api.offsets import TopicPartition

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLED = 1_000
"""Keys of a partition: if one key in 200 is in another partition, too, all but a run in a hundred find it."""
_WAITING = 1_000
_PIECE_BYTES = 32 << 10
_ALL = 1 << 64
_FACTOR = 0x9E3779B97F4A7C15
"""Odd, so that it has an inverse modulo 2^64."""
_Sample = tuple["NDArray[Any]", "NDArray[Any]"]


class Spread(NamedTuple):
    """Keys of one topic.

    Attributes:
        keys: how many there are.
        several: how many of them have records in several partitions; at least 1.
        is_estimated: whether these are estimates from samples.
        places: two records of one of them, in two partitions.
    """

    keys: int
    several: int
    is_estimated: bool
    places: tuple[str, str]


class KeySketches:
    """The samples of a task's partitions."""

    def __init__(self) -> None:
        """Nothing was seen."""
        self._samples: dict[TopicPartition, _Sample] = {}
        self._waiting: defaultdict[tuple[TopicPartition, Hashable, int], list[tuple[int, Sequence[Any]]]]
        self._waiting = defaultdict(list)
        self._seeds: dict[Hashable, Any] = {}

    def see(self, partition: TopicPartition, offset: int, target: Hashable, key: Sequence[Any]) -> None:
        """Look at a record.

        Args:
            partition, offset: where it was consumed.
            target: in which its key is one, such as a table; `str` gives its name.
            key: the texts, numbers, and so on, that identify what it changes there.
        """
        place = (partition, target, len(key))
        waiting = self._waiting[place]
        waiting.append((offset, key))
        if len(waiting) >= _WAITING:
            self._take_waiting(place)

    def see_columns(self, partition: TopicPartition, offsets: Any, target: Hashable, columns: Iterable[Any]) -> None:
        """The same for several records; `columns`: an Arrow array for each member of a key."""
        if len(offsets):
            self._add(partition, offsets, _hashes(self._seed(target), map(_texts, columns)))

    def sample(self, partition: TopicPartition) -> str:
        """The sample of a partition as text; "": no record was seen."""
        import numpy as np

        for place in [place for place in self._waiting if place[0] == partition]:
            self._take_waiting(place)
        found = self._samples.get(partition)
        return "" if found is None else b64encode(np.concatenate(found).astype("<u8").tobytes()).decode()

    def _take_waiting(self, place: tuple[TopicPartition, Hashable, int]) -> None:
        import numpy as np
        import pyarrow as pa

        partition, target, _ = place
        entries = self._waiting.pop(place)
        columns = zip(*(key for _, key in entries), strict=True)
        texts = [pa.array([_text(value) for value in column], pa.binary()) for column in columns]
        self._add(partition, np.array([offset for offset, _ in entries]), _hashes(self._seed(target), texts))

    def _seed(self, target: Hashable) -> Any:
        import pyarrow as pa

        if target not in self._seeds:
            self._seeds[target] = _column_hash(pa.array([_text(str(target))], pa.binary()))
        return self._seeds[target]

    def _add(self, partition: TopicPartition, offsets: Any, hashes: NDArray[Any]) -> None:
        """Keep the smallest hashes, each with the first of its offsets."""
        import numpy as np

        places = np.asarray(offsets).astype(np.uint64)
        if partition in self._samples:
            known, first = self._samples[partition]
            if len(known) == SAMPLED:
                chosen = hashes < known[-1]
                if not chosen.any():
                    return
                hashes, places = hashes[chosen], places[chosen]
            hashes, places = np.concatenate((known, hashes)), np.concatenate((first, places))
        smallest, at = np.unique(hashes, return_index=True)
        self._samples[partition] = smallest[:SAMPLED], places[at[:SAMPLED]]


def spread_of(samples: Mapping[TopicPartition, Sequence[str]]) -> Spread | None:
    """Compare the samples of the partitions of one topic; None: no key was found in several of them."""
    import numpy as np

    found = {partition: _merged(texts) for partition, texts in sorted(samples.items()) if any(texts)}
    if len(found) < 2:
        return None
    limit = min([int(hashes[-1]) for hashes, _, is_full in found.values() if is_full], default=_ALL)
    every = np.concatenate([hashes for hashes, _, _ in found.values()])
    different, counts = np.unique(every, return_counts=True)
    shared = different[counts > 1]
    if not len(shared):
        return None
    places = [
        f"{partition}@{int(offsets[np.searchsorted(hashes, shared[0])])}"
        for partition, (hashes, offsets, _) in found.items()
        if shared[0] in hashes
    ]
    share = _ALL / limit
    keys = round(sum(int(key) <= limit for key in different) * share)
    several = round(sum(int(key) <= limit for key in shared) * share)
    # Keys above the limit are in no sample of some partitions, but those that were found twice are facts.
    return Spread(max(keys, len(different)), max(several, len(shared)), limit < _ALL, (places[0], places[1]))


def _merged(texts: Iterable[str]) -> tuple[NDArray[Any], NDArray[Any], bool]:
    """Hashes, offsets and whether the sample is full, of all ranges of a partition."""
    import numpy as np

    halves = [np.split(np.frombuffer(b64decode(text), "<u8"), 2) for text in texts if text]
    hashes, at = np.unique(np.concatenate([half[0] for half in halves]), return_index=True)
    offsets = np.concatenate([half[1] for half in halves])[at]
    return hashes[:SAMPLED], offsets[:SAMPLED], len(hashes) >= SAMPLED


# --- hashes: the same for a Python value and for the value in a column ----------------------------------------------


def _text(value: Any) -> bytes:
    """What is hashed of a value; values that a table or an index may take for one are one, such as 1 and `1`."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, bool):
        return b"%d" % value
    if isinstance(value, Decimal) and value.is_finite():
        return format(value.normalize() + 0, "f").encode()
    if isinstance(value, datetime) and value.tzinfo is not None:
        return str(value.astimezone(UTC).replace(tzinfo=None)).encode()
    return str(value).encode("utf-8", "surrogatepass")


def _texts(column: Any) -> Any:
    """`_text` of each value of a column."""
    import pyarrow as pa

    kind = column.type
    if not column.null_count:
        if pa.types.is_integer(kind):
            return column.cast(pa.string()).cast(pa.binary())
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            return column.cast(pa.binary())
    return pa.array([_text(value) for value in column.to_pylist()], pa.binary())


def _hashes(seed: Any, columns: Iterable[Any]) -> Any:
    """One hash for each row. `seed`: uint64[1], of its target; `columns`: texts of the members of the key."""
    import numpy as np

    total: Any = seed
    for hashes in map(_column_hash, columns):
        total = _mixed(total * np.uint64(_FACTOR) + hashes)
    return total


def _column_hash(texts: Any) -> Any:
    """A hash for each text: the polynomial of its bytes modulo 2^64, mixed with its length."""
    import numpy as np
    import pyarrow as pa

    array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    _, offsets, data = cast("Any", array.buffers())
    bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    content = np.frombuffer(b"" if data is None else data, np.uint8)
    found = np.empty(len(array), np.uint64)
    start = 0
    while start < len(array):  # In pieces that stay in the cache of the processor.
        end = max(start + 1, int(np.searchsorted(bounds, bounds[start] + _PIECE_BYTES, "right")) - 1)
        first, last = int(bounds[start]), int(bounds[end])
        found[start:end] = _polynomials(content[first:last], bounds[start : end + 1] - first)
        start = end
    return _mixed(found + np.diff(bounds).astype(np.uint64))


def _polynomials(content: Any, bounds: Any) -> Any:
    """Of the texts between `bounds` in `content`."""
    import numpy as np

    size = max(_PIECE_BYTES, len(content)) + 1
    powers, inverse = _powers(_FACTOR, size), _powers(pow(_FACTOR, -1, _ALL), size)
    # Sums from the beginning: that of a text is the difference of two, divided by the power at its start.
    sums = np.zeros(len(content) + 1, np.uint64)
    np.cumsum((content + np.uint64(1)) * powers[: len(content)], out=sums[1:])
    return (sums[bounds[1:]] - sums[bounds[:-1]]) * inverse[bounds[:-1]]


@lru_cache(maxsize=2)
def _usual_powers(base: int) -> NDArray[Any]:
    return _made_powers(base, _PIECE_BYTES + 1)


def _powers(base: int, count: int) -> NDArray[Any]:
    """1, base, base^2, ... modulo 2^64."""
    return _usual_powers(base) if count == _PIECE_BYTES + 1 else _made_powers(base, count)


def _made_powers(base: int, count: int) -> NDArray[Any]:
    import numpy as np

    powers = np.full(count, base, np.uint64)
    powers[:1] = 1
    return np.cumprod(powers, dtype=np.uint64)


def _mixed(numbers: Any) -> Any:
    """Each bit of the result depends on all bits of a number (the finalizer of splitmix64)."""
    import numpy as np

    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))
