"""`${env:NAME}`: an environment variable."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from airflow_connect.errors import ConfigError
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError

ALLOWLIST_PATTERN = "allowlist.pattern"


class EnvVarConfigProvider:
    """org.apache.kafka.common.config.provider.EnvVarConfigProvider. Setting: `allowlist.pattern`.

    The pattern is a Java regular expression that the whole name of a variable must match; without it every variable of
    the process that starts the run can be read.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        """Read from `environment`."""
        self._environment = environment
        self._pattern: JavaPattern | None = None

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take `allowlist.pattern`.

        Raises:
            ConfigError: it is not a regular expression.
        """
        given = settings.get(ALLOWLIST_PATTERN)
        try:
            self._pattern = None if given is None else compile_java_pattern(given)
        except PatternError as error:
            raise ConfigError(
                f"The {ALLOWLIST_PATTERN} {given!r} is not a regular expression: {error}.",
                config_path=ALLOWLIST_PATTERN,
                suggestion="Write one that matches the whole names of the variables, such as CONNECT_.*",
            ) from error

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        """The variables among `keys` that are set.

        Raises:
            ConfigError: a path is given, or the pattern forbids a name.
        """
        if path:
            raise ConfigError(
                f"Environment variables have no path, but {path!r} is given as one.",
                code="config.reference_incomplete",
                suggestion="Write the reference as ${env:NAME}.",
            )
        for key in keys:
            if self._pattern is not None and self._pattern.fullmatch(key) is None:
                raise ConfigError(
                    f"The variable {key} does not match {ALLOWLIST_PATTERN} of the config provider.",
                    code="config.path_not_allowed",
                    suggestion="Use a variable whose whole name matches, or extend the pattern.",
                )
        return {key: self._environment[key] for key in keys if key in self._environment}

    def close(self) -> None:
        """Nothing is open."""
