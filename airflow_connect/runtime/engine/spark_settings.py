"""Which `spark.*` settings a run accepts, and which of them only `spark-submit` can apply."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from airflow_connect.errors import ConfigError

MASTER, REMOTE = "spark.master", "spark.remote"
DEFAULT_MASTER = "local[*]"
_DIRECT = ("local", "spark://")
_SUBMITTED = ("yarn", "k8s://")
_DEPLOY_MODE, _API_MODE, _PY_FILES = "spark.submit.deployMode", "spark.api.mode", "spark.submit.pyFiles"

_ONLY_SUBMIT_APPLIES = (
    "spark.driver.defaultJavaOptions",
    "spark.driver.extraClassPath",
    "spark.driver.extraLibraryPath",
    "spark.jars",
    "spark.kerberos.",
    "spark.submit.",
)
"""First parts of settings that SparkContext ignores or applies in part: class path, downloads, the login with a keytab.

Source: SparkSubmit.prepareSubmitEnvironment and SparkSubmitCommandBuilder (Spark 4.2).
"""
_CONFIGURATION_FILES = ("spark-defaults.conf", "spark-env.sh")


def refuse_unusable(settings: Mapping[str, str]) -> None:
    """Refuse settings with which Spark would not start, or would start with its settings on a command line.

    Raises:
        ConfigError: names the setting. Values that may hold a token are not shown.
    """
    if remote := settings.get(REMOTE):
        if not remote.startswith("sc://"):
            raise ConfigError(
                f"{REMOTE} is not the address of a Spark Connect server: it must begin with sc://.",
                code="spark.remote_invalid",
                config_path=REMOTE,
                suggestion=f"Write it as sc://host:15002, or use {MASTER} for a session that this machine starts.",
            )
        return
    master = settings.get(MASTER, DEFAULT_MASTER)
    if master != "yarn" and not master.startswith((*_DIRECT, "k8s://")):
        scheme = master.partition("://")[0]
        raise ConfigError(
            f"Spark has no master {scheme!r}.",
            code="spark.master_unknown",
            config_path=MASTER,
            suggestion=f"Set {MASTER} to local[N], spark://host:7077, yarn or k8s://https://host:443, or use {REMOTE}.",
        )
    if any(name.strip().endswith(".whl") for name in settings.get(_PY_FILES, "").split(",")):
        raise ConfigError(
            f"{_PY_FILES} names a wheel, which Spark sends to executors but does not put on their path.",
            code="spark.wheel",
            config_path=_PY_FILES,
            suggestion="Copy the wheel to a name that ends with .zip, or send an environment with spark.archives.",
        )
    if settings.get(_DEPLOY_MODE, "client") != "client":
        raise ConfigError(
            f"{_DEPLOY_MODE} is {settings[_DEPLOY_MODE]!r}.",
            code="spark.deploy_mode",
            config_path=_DEPLOY_MODE,
            suggestion="Set it to client or remove it: the driver runs next to the Airflow task.",
        )
    if settings.get(_API_MODE, "classic") != "classic":
        raise ConfigError(
            f"{_API_MODE} is {settings[_API_MODE]!r}, with which pyspark puts every setting on a command line.",
            code="spark.api_mode",
            config_path=_API_MODE,
            suggestion=f"Remove it. For a Spark Connect server set {REMOTE}.",
        )


def needs_spark_submit(settings: Mapping[str, str], spark_home: Path) -> bool:
    """Whether `spark-submit` must start the JVM, because of the master, a setting, or Spark's own configuration files.

    Without it, the JVM starts in half the time.
    """
    if settings.get(MASTER, DEFAULT_MASTER).startswith(_SUBMITTED):
        return True
    if os.environ.get("SPARK_DIST_CLASSPATH") or any(name.startswith(_ONLY_SUBMIT_APPLIES) for name in settings):
        return True
    folder = Path(os.environ.get("SPARK_CONF_DIR") or spark_home / "conf")
    return any((folder / name).is_file() for name in _CONFIGURATION_FILES)
