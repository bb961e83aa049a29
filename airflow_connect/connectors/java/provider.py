"""Java config providers: they look up secrets in a plugin host on the machine where a run is started."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from airflow_connect.connectors.java.hosts import DRIVER_HOSTS, close_host
from airflow_connect.errors import ConfigError, UnavailableError
from airflow_connect.jvm.discovery.java_plugin import JavaPlugin

_TIMEOUT_S = 60.0


class JavaConfigProvider:
    """The base of generated classes; see `ConfigProvider`. Java is started by the first look-up."""

    plugin: ClassVar[JavaPlugin]

    def configure(self, settings: Mapping[str, str]) -> None:
        """Keep the settings: only the class itself knows whether they are right."""
        self._settings = dict(settings)

    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        """Ask the class. What its exceptions say is not shown: it may be a secret.

        Raises:
            ConfigError: the class has failed.
            UnavailableError: it says that another attempt may succeed.
            ConnectError: there is no Java, or its JVM has ended.
        """
        host = DRIVER_HOSTS.take(self.plugin, {})
        try:
            host.hide_values(self._settings.values())
            asked: dict[str, Any] = {"class": self.plugin.class_name, "path": path, "keys": list(keys)}
            answer = host.call("get_config", timeout_s=_TIMEOUT_S, config=self._settings, **asked).result
        except BaseException:
            close_host(host)
            raise
        values: Mapping[str, str] = answer.get("values", {})
        host.hide_values(values.values())
        DRIVER_HOSTS.give_back(self.plugin, {}, host)
        if "failed" in answer:
            raise self._failure(answer)
        return values

    def close(self) -> None:
        """Nothing is open: the class is closed after each look-up."""

    def _failure(self, answer: Mapping[str, str]) -> ConfigError | UnavailableError:
        name = self.plugin.class_name
        message = f"The config provider {name} failed in {answer['failed']} with {answer['class']}."
        if answer["retriable"]:
            return UnavailableError(message, suggestion="The server of the provider may answer later.")
        return ConfigError(
            message,
            suggestion="Check its settings (config.providers.<name>.param.*) and the reference. What the exception says"
            " is not shown, because it may be a secret.",
        )
