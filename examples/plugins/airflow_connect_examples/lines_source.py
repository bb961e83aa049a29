"""A source: the lines of a text file. Its offset is the number of lines that were read."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from airflow_connect.api import ConfigDef, ConfigKey, ConfigType, SourceConnector, SourceRecord, SourceTask


class LinesSourceTask(SourceTask):
    def start(self, config: Mapping[str, str]) -> None:
        self.file, self.topic = config["lines.file"], config["topic"]
        committed = self.context.offset_reader.offset({"file": self.file})
        self.done = int(committed["lines"]) if committed else 0
        self.end = len(Path(self.file).read_text().splitlines())  # lines that come later are for the next run

    def poll(self) -> Sequence[SourceRecord] | None:
        lines = Path(self.file).read_text().splitlines()[self.done : min(self.done + 500, self.end)]
        records = [self.record(line, number) for number, line in enumerate(lines, self.done + 1)]
        self.done += len(lines)
        return records or None

    def record(self, line: str, number: int) -> SourceRecord:
        where, position = {"file": self.file}, {"lines": number}
        return SourceRecord(topic=self.topic, value=line, source_partition=where, source_offset=position)

    def has_ended(self) -> bool:
        return self.done >= self.end

    def stop(self) -> None:
        """Nothing is open between two calls of poll."""


class LinesSourceConnector(SourceConnector):
    task_class = LinesSourceTask
    keys = ConfigKey("lines.file", ConfigType.STRING), ConfigKey("topic", ConfigType.STRING)
    config_def = ConfigDef().define(*keys)

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [self.config]  # one file, one task
