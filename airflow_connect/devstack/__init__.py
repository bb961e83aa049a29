"""Real servers on loopback for demo, tests and benchmarks: one call each, ready when the call returns.

What it owns: finding Java (`java`), fetching jars by lock file (`jars`), class-data archives (`class_data`),
child processes that never outlive their parent (`process`, `guard`) and one file for each server (`kafka`,
`s3`, `s3_faults`).

Invariants:
1. A server binds to 127.0.0.1 only.
2. A server ends when `stop()` is called, and also when the process that started it dies by any signal.
3. Nothing is executed that its lock file does not name with a matching sha256.

A further server is a further file: a lock in `locks/`, the command line, and a readiness check given to
`process.ServerProcess`. Neighbours: `cli` uses it for the demo, `tests/conftest.py` for its fixtures; product
code never does.
"""
