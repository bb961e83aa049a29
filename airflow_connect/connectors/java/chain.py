"""Java converters, transformations and predicates in the chain of a connector that runs its chain here.

All of a task share one plugin host. Each has the methods of its Python counterpart, for one record, and one for many:
a request for each record would take longer than most of what is done to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.api.record import ConnectRecord
from airflow_connect.api.transform import Predicate, Transformation
from airflow_connect.config.keys.java_hosts import JavaKeys
from airflow_connect.connectors.java.failures import failure_of
from airflow_connect.connectors.java.hosts import HostSettings, close_host
from airflow_connect.errors import DataError, InternalError
from airflow_connect.jvm.data.records import Data, Text
from airflow_connect.jvm.discovery.java_plugin import JavaPlugin, folders_of

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.config.resolved.java_chain import JavaChainConfig
    from airflow_connect.jvm.host import PluginHost
    from airflow_connect.jvm.stages import JavaStages, Outcome

R = TypeVar("R", bound=ConnectRecord)
T = TypeVar("T")


class JavaChain:
    """The plugin host of a task's chain."""

    def __init__(self, host: PluginHost, stages: JavaStages) -> None:
        """Use `start`."""
        self._host = host
        self.stages = stages

    @classmethod
    def start(cls, config: JavaChainConfig, where: str = "") -> Self:
        """Start a JVM; `where` goes behind the names of classes in errors.

        Raises:
            ConfigError: a setting is wrong, or a class is in several places, which differ.
            ConnectError: the JVM does not start.
        """
        from airflow_connect.jvm.stages import JavaStages

        keys = JavaKeys.from_config(config.hosts)
        host = HostSettings.of_chain(folders_of(config.class_names), keys).start()
        host.secret_names = config.hidden_keys
        return cls(host, JavaStages(host, keys.call_timeout_s, where))

    def close(self) -> None:
        """Close the classes, and end the JVM; what goes wrong in that is logged. Idempotent."""
        close_host(self._host)


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """What became of the first records of those that were given; the class has not seen the others.

    Attributes:
        results: one for each. An error is in the place of a result that Python cannot hold.
        failure: why the record after them failed; None: none did.
    """

    results: Sequence[T | DataError]
    failure: DataError | None


class JavaStage:
    """The base of Java classes of a chain."""

    plugin: ClassVar[JavaPlugin]
    config_def: ClassVar[ConfigDef]

    def __init__(self, kind: str = "", chain: JavaChain | None = None) -> None:
        """`kind`: see `JavaStages.open`. Without a chain, only the configuration is checked, without Java."""
        self._kind = kind
        self._chain = chain
        self._number = -1

    def configure(self, config: Mapping[str, str], _is_key: bool = False) -> None:
        """Create the Java object, and configure it.

        Raises:
            ConfigError: it refuses the configuration.
            ConnectError: it fails, or its JVM does.
        """
        if self._chain is None:
            self.config_def.parse(config)
        else:
            self._number = self._chain.stages.open(self._kind, self.plugin.class_name, config)

    def close(self) -> None:
        """Nothing: the chain closes all of its Java objects."""

    def _done(self, call: Callable[[JavaStages, int], Outcome[T]], stage_class: str = "") -> Done[T]:
        if self._chain is None:
            raise InternalError(f"{self.plugin.class_name} has no JVM to run in.")
        outcome = call(self._chain.stages, self._number)
        failure = outcome.failure
        if isinstance(failure, Mapping):
            failure = failure_of(failure, stage_class)
        return Done(outcome.results, failure)


class JavaTransformation(JavaStage, Transformation):
    """A transformation of a plugin path."""

    def apply_many(self, records: Sequence[R]) -> Done[R | None]:
        """Transform the first of these records."""
        return self._done(lambda stages, number: stages.apply(number, records))

    def apply(self, record: R) -> R | None:
        """Transform one record."""
        return _only(self.apply_many([record]))


class JavaPredicate(JavaStage, Predicate):
    """A predicate of a plugin path."""

    def test_many(self, records: Sequence[ConnectRecord], stage_class: str = "") -> Done[bool]:
        """Test the first of these records. `stage_class`: the transformation, for dead letters."""
        return self._done(lambda stages, number: stages.test(number, records), stage_class)

    def test(self, record: ConnectRecord) -> bool:
        """Test one record."""
        return _only(self.test_many([record]))


class JavaConverter(JavaStage):
    """A converter of a plugin path, also of headers."""

    def to_connect_many(self, texts: Sequence[Text]) -> Done[SchemaAndValue]:
        """Bytes to data, for the first of these."""
        return self._done(lambda stages, number: stages.to_connect(number, texts))

    def from_connect_many(self, values: Sequence[Data]) -> Done[bytes | None]:
        """Data to bytes, for the first of these."""
        return self._done(lambda stages, number: stages.from_connect(number, values))

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Bytes to data."""
        return _only(self.to_connect_many([Text(topic, data)]))

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Data to bytes."""
        return _only(self.from_connect_many([Data(topic, schema, value)]))

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """The bytes of a header to data."""
        return _only(self.to_connect_many([Text(topic, data, name)]))

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """The data of a header to bytes."""
        return _only(self.from_connect_many([Data(topic, schema, value, name)]))


def _only(done: Done[T]) -> T:
    """The result of a single record.

    Raises:
        DataError: it failed.
    """
    if done.failure is not None:
        raise done.failure
    (result,) = done.results
    if isinstance(result, DataError):
        raise result
    return result
