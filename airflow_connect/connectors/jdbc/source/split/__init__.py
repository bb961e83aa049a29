"""A first load of a large table by many tasks.

`sizes.py` estimates how many rows tables have, `cuts.py` finds keys that divide a table into ranges of equal size,
`plan.py` decides which tables are divided, and into how many ranges. `offsets/ranges.py` is what is kept in the
offsets, so that a later run does not repeat complete ranges; `read/snapshot.py` lets all tasks read the same state of
the database.
"""
