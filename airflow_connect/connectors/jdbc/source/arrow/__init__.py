"""Tables of PostgreSQL in Arrow batches, without a Python object per row.

`fields.py` chooses how each column is selected and how its Arrow values become those of the Connect schema; values that
it cannot convert at once go through the conversion of the row path, one by one, with the same results and errors.
`reader.py` streams the batches, and moves positions as `reading.TableReader` does. `texts.py`, `text_columns.py` and
`literals.py` make the texts by which rows are recognised; `ordered_rows.py` reads those that `bulk.changed.only`
compares.
"""
