"""Iceberg sink: topics as tables of a lake, exactly once: one snapshot for each table and run.

`keys.py` and `tables.py` have the configuration, and which record goes to which table (`routes.py`). `catalogs.py`
opens the catalog. On executors, `task.py` converts records to the columns of a table (`types.py`, `columns.py`,
`inferred.py`), creates tables and changes their schemas (`open_tables.py`, `schemas.py`), and writes data files for
each partition (`partitions.py`, `data_files.py`). On the driver, `publisher.py` commits them (`snapshots.py`,
`chain.py`, `old_metadata.py`) and removes what dead runs have left (`stored_files.py`); `commits.py` tells what a run
has committed, and `history.py` whether the tables still have it.

Invariants, beside those of `exactly_once`:
1. A data file is visible only by a snapshot. Its name holds the id of the run, and of the attempt that wrote it.
2. The id of a run's snapshot follows from the run's id, the table and the branch, so every attempt to publish it, by
   whomever and whenever, adds the same snapshot. A table never has two snapshots with one id.
3. The commit that adds the snapshot also sets a property of the table to the run (the chain), with the runs before it.
   So a run that finds its snapshot expired still knows that it was published, and a sweep knows which runs were.
4. A commit requires that the table is the same one and that its branch has not moved (Iceberg REST specification,
   `assert-table-uuid`, `assert-ref-snapshot-id`). Whatever the catalog answers, except success, is looked up.
5. Nothing is deleted after an error of a commit.
"""
