"""JdbcSink: records as rows of tables, exactly once, because offsets are committed in the same database transaction.

`keys.py` and `config.py` have the configuration. `fields.py` decides which columns a record has, `values.py` what is
bound to them, `statements` what is executed, `tables.py` creates and alters tables. `batches.py` collects rows in the
order of the log, `writing.py` writes them in one transaction with the offsets of `offsets.py`, `executing.py` takes
the fastest way that the database has, and finds the row that it refuses. `columns` does the same for records in Arrow
columns, in transactions of their own; what it cannot do, it leaves to the rows.

Invariants:
1. Rows and the offset after them are committed by the same transaction.
2. The first statement of a transaction moves the offset, and only from where this task has left it, in this run's
   epoch. Zero rows updated means: another run has taken over, or an earlier COMMIT took effect after all. The table
   tells which; nothing is guessed.
3. Tables are created and altered before a transaction begins, because DDL commits implicitly in MySQL and Oracle.
"""
