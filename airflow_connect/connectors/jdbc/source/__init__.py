"""The JDBC source: tables, or the result of a query, to topics, as io.confluent.connect.jdbc.JdbcSourceConnector.

The driver finds the tables (`discovery.py`), freezes the upper bound of the run from the database's own clock, and
leaves out tables without new rows (`connector.py`). A task reads its tables one after the other (`task.py`). For each
table, `criteria.py` writes the condition for new rows, `reading.py` streams them and never takes a part of a group with
the same timestamp, `lookback.py` recognises rows that were sent before, `columns.py` finds the columns of a result, and
`mapping.py` maps them to a Connect schema and converts their values. `offsets.py` has source partitions and offsets in
Confluent's form, `local_times.py` the rules for times without a zone.
"""
