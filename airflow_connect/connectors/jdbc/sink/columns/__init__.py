"""The columnar path: Arrow columns to rows of tables, without a Python object per record.

`binding.py` turns Connect's columns into those of a table, `chunk.py` is what a transaction gets. `pgcopy.py` and
`mysql_values.py` are what goes over the wire, `loading.py` sends it. Nothing here reports errors: whatever is not
supported, or is refused by the database, takes the path of rows, which finds the record.
"""
