"""The config providers of this package: Java class name to dotted path.

Paths only: a class is imported when a configuration names it. `airflow_connect/plugin_tables.py` joins the tables.
"""

from __future__ import annotations

from airflow_connect.api.config.plugins import PluginKind

TABLES = {
    PluginKind.CONFIG_PROVIDER: {
        f"org.apache.kafka.common.config.provider.{name}ConfigProvider": (
            f"airflow_connect.config_providers.{module}:{name}ConfigProvider"
        )
        for name, module in (("File", "file"), ("Directory", "directory"), ("EnvVar", "environment"))
    },
}
