"""Floor 6: the command line `airflow-connect`.

Invariants:
1. stdout carries the result (`--json`: exactly one envelope per answer), stderr everything else.
2. Exit code 0 done, 1 a run failed, 2 the configuration is wrong, 130/143 interrupted; of several connectors
   the worst.
3. A command that has nothing to copy loads neither Spark nor a store's client.

`main` dispatches, `commands/<verb>.py` do the work and return an `Outcome`, `terminal` and `live_progress`
draw.
Neighbours: `runtime.driver.run` does the runs, in this process; `demo` reaches Airflow through a process of
its own.
"""
