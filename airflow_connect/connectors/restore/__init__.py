"""Restore of backups: files of whole records, as the storage sinks write them, back into topics.

`keys` and `config` read the configuration, `backup` lists the files, `plan` orders them into one chain for each
partition, `target` protects the topics that records go to, `work` carries the plan to the tasks, `read` reads files,
and `task` returns their records.
"""
