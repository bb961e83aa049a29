"""Which settings of Kafka clients a connector may override: `connector.client.config.override.policy` (KIP-458)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_connect.errors import ConfigError

POLICY = "connector.client.config.override.policy"
ALLOWLIST = "connector.client.config.override.allowlist"
POLICIES = ("All", "None", "Principal", "Allowlist")
PRINCIPAL_KEYS = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})
"""The settings that the policy Principal lets a connector override."""


def policy_name(value: str) -> str:
    """The short name of a policy given by its short name or its Java class name; "" if there is none."""
    simple = value.rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy")
    return next((policy for policy in POLICIES if policy.lower() == simple.lower()), "")


@dataclass(frozen=True, slots=True)
class OverridePolicy:
    """A policy: its short name, and the settings that Allowlist allows (KIP-1188)."""

    name: str
    allowlist: frozenset[str] = frozenset()

    @classmethod
    def of_worker(cls, worker: Mapping[str, Any]) -> OverridePolicy:
        """The policy of a worker's raw configuration; `All` if it does not set one.

        Raises:
            ConfigError: there is no such policy.
        """
        given = str(worker.get(POLICY) or "All").strip()
        name = policy_name(given)
        if not name:
            raise ConfigError(
                f"Invalid value {given} for configuration {POLICY}: String must be one of: {', '.join(POLICIES)}.",
                suggestion=f"Use {', '.join(POLICIES[:-1])} or {POLICIES[-1]}.",
                config_path=POLICY,
            )
        allowed = (key.strip() for key in str(worker.get(ALLOWLIST) or "").split(","))
        return cls(name, frozenset(key for key in allowed if key))

    def allows(self, setting: str) -> bool:
        """Whether a connector may override `setting`, a name without prefix."""
        if self.name in ("All", "None"):
            return self.name == "All"
        return setting in (PRINCIPAL_KEYS if self.name == "Principal" else self.allowlist)

    def check(self, overrides: Iterable[tuple[str, str]]) -> None:
        """Check overrides, given as (prefix, name without it), against the policy.

        Raises:
            ConfigError: with Connect's text; names all that are refused.
        """
        refused = [prefix + name for prefix, name in overrides if not self.allows(name)]
        if not refused:
            return
        extend = f", or list it in {ALLOWLIST}" if self.name == "Allowlist" else f", or change {POLICY}"
        raise ConfigError(
            f"The '{self.name}' policy does not allow '{', '.join(refused)}' to be overridden in the connector"
            " configuration.",
            suggestion=f"Remove the key{extend} in the worker configuration.",
            config_path=refused[0],
        )
