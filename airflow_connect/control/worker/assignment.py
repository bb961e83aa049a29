"""Which worker runs which connector: pure functions of the members, the connectors and who has them now.

Every worker computes the same from the same topics, so no message between workers is needed. Few connectors move: one
whose worker is alive stays there unless the loads differ by more than `TOLERANCE` of their mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

TOLERANCE = 0.1
Owners = Mapping[str, str]
"""Worker id by connector."""


def placed(members: Collection[str], costs: Mapping[str, float], owners: Owners) -> dict[str, str]:
    """Give connectors without a live worker to the members with the least load, the most expensive ones first.

    Args:
        members: ids of the live workers; at least one.
        costs: of every connector, in any unit; not negative.
        owners: who has them now; workers that are no members do not count.

    Returns:
        The member of every connector of `costs`.
    """
    found = {name: owners[name] for name in costs if owners.get(name) in members}
    loads = _loads(members, costs, found)
    for name in sorted(costs.keys() - found.keys(), key=lambda name: (-costs[name], name)):
        least = min(loads, key=lambda worker: (loads[worker], worker))
        found[name] = least
        loads[least] += costs[name]
    return found


def balanced(members: Collection[str], costs: Mapping[str, float], owners: Owners) -> dict[str, str]:
    """`placed`, then moves from the member with the most load to the one with the least, as long as that helps."""
    found = placed(members, costs, owners)
    loads = _loads(members, costs, found)
    tolerated = TOLERANCE * sum(costs.values()) / len(loads)
    while True:
        most = max(loads, key=lambda worker: (loads[worker], worker))
        least = min(loads, key=lambda worker: (loads[worker], worker))
        gap = loads[most] - loads[least]
        if gap <= tolerated:
            return found
        name = _best_move([name for name, worker in found.items() if worker == most], costs, gap)
        if name is None:
            return found
        found[name] = least
        loads[most] -= costs[name]
        loads[least] += costs[name]


def _best_move(names: Iterable[str], costs: Mapping[str, float], gap: float) -> str | None:
    """The connector whose move leaves the smallest gap; None: every move would make it larger."""
    useful = [name for name in names if 0 < costs[name] < gap]
    return min(useful, key=lambda name: (abs(gap / 2 - costs[name]), name), default=None)


def _loads(members: Collection[str], costs: Mapping[str, float], owners: Owners) -> dict[str, float]:
    loads = dict.fromkeys(sorted(members), 0.0)
    for name, worker in owners.items():
        loads[worker] += costs[name]
    return loads
