"""Layer 8: the command line `airflow-connect`.

Invariants:
1. stdout carries the result (`--json`: exactly one envelope per answer), stderr everything else.
2. Exit code 0 done, 1 a run failed, 2 the configuration is wrong, 130/143 interrupted; of several connectors
   the worst.
3. A command that has nothing to copy loads neither Spark nor a store's client.
4. Output to a pipe or a file is plain and has a stable form: no colours and no wrapping, whatever the width. rich is
   loaded only for a terminal. No text is interpreted as markup, and control characters are escaped.

`main` dispatches. `commands/<verb>.py` do the work and return an `Outcome` of `blocks`. `terminal` writes them as
plain lines, or uses rich (`drawing`, `phase_line`) on a terminal.
Neighbours: `runtime.driver.entry` does the runs, in this process; `demo` runs Airflow in a separate process.
"""
