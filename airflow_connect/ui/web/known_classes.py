"""Which classes the API server may import because a DAG names them: those of this package and of entry points.

Who installs a package with an entry point decides about the API server. Who writes a DAG decides about the machines
that run its tasks only, so a dotted path in its configuration must not be imported here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from airflow_connect.api.config.plugins import PluginKind, installed

PROVIDERS = "config.providers."
_PATH = re.compile(r"([A-Za-z_]\w*)(?:\.[A-Za-z_]\w*)*:[A-Za-z_][\w.]*")
_DOTTED = re.compile(r"([A-Za-z_]\w*)(?:\.[A-Za-z_]\w*)+")
_NAMES_A_CLASS = re.compile(r"(?:^|\.)(?:class|type|converter|strategy|extractor|provider|policy|sampler)$")
"""Keys whose values are classes; a topic may have a dotted name, too."""


def unknown_classes(config: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Keys of a configuration that name a class which is neither of this package nor an entry point; imports nothing.

    Args:
        config: of a connector or a worker.
        prefix: only keys that begin with it.
    """
    return [key for key, value in config.items() if key.startswith(prefix) and any(_unknown(key, value))]


def _unknown(key: str, value: Any) -> Iterator[bool]:
    for name in str(value or "").split(","):
        name = name.strip()
        found = _PATH.fullmatch(name) or (_NAMES_A_CLASS.search(key) and _DOTTED.fullmatch(name))
        if found and found[1] != "airflow_connect" and _exists(found[1]):
            yield not any(installed(kind, name) for kind in PluginKind)


def _exists(package: str) -> bool:
    """Whether there is such a package, which alone is not imported by the look."""
    try:
        return find_spec(package) is not None
    except ValueError:  # A module without a spec, such as __main__.
        return True
