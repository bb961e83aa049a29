"""Hive-style tables over the files of a sink: the records that a run publishes become rows of an external table.

There is one table per topic, over the topic's directory, and one partition per directory below it. Every operation is
idempotent, because a crash between publish and commit repeats it:

1. A table is created once and never replaced. A table with another location, format or partitions is not changed; the
   run reports it.
2. Columns are only added at the end, or widened. A table never loses a column: a run with an older schema changes
   nothing. Changes also apply to existing partitions (CASCADE), so old directories have the new columns, as nulls.
3. Partitions are added with "if not exists", in batches.

`types.py` and `columns.py` map a Connect schema to Hive, `evolution.py` evolves a table with it, `tables.py` describes
a table, `catalog.py` updates a metastore through `client.py`, and `settings.py` has its addresses. This package does
not depend on stores, sinks or runs.
"""
