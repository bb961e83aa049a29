"""Which AWS regions exist, read from botocore's data without importing botocore (which costs 100 ms)."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def known_regions() -> tuple[str, ...]:
    """Region names that the installed botocore knows, sorted; () when botocore or its data is not there."""
    spec = find_spec("botocore")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        file = Path(folder) / "data" / "partitions.json"
        if file.is_file():
            partitions = json.loads(file.read_text("utf-8"))["partitions"]
            names = {name for partition in partitions for name in partition["regions"]}
            return tuple(sorted(name for name in names if not name.endswith("-global")))
    return ()
