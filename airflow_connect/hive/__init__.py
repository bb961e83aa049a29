"""Hive-style tables over the files of a sink: what a run has published becomes rows of an external table.

One table per topic, over the topic's directory; one partition per directory below it. Everything here may be repeated
and changes nothing the second time, because a crash between publishing and committing repeats it:

1. A table is made once and never replaced; one with another location, format or partitions is left alone, with a
   sentence.
2. Columns are only added, at the end, or made wider. What a table has, it keeps: a run with an older schema changes
   nothing. A change goes to the partitions that exist as well (CASCADE), so that old directories have the new columns,
   as nulls.
3. Partitions are added with "if not exists", in batches.

`types.py` and `columns.py` say what a Connect schema is in Hive, `evolution.py` how a table follows it, `tables.py`
what a table looks like, `catalog.py` brings a metastore up to date through `client.py`, `settings.py` says where it is.
It knows nothing of stores, sinks or runs.
"""
