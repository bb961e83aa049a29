"""Real servers on loopback for demo, tests and benchmarks: one call each, ready when the call returns.

`launching` fetches jars by lock file (`jars`) and runs child processes that never outlive their parent (`process`,
`guard`). Each server has one file (`kafka`, `s3`, `s3_faults`).

Invariants:
1. A server binds to 127.0.0.1 only.
2. A server ends when `stop()` is called, and also when the process that started it dies by any signal.
3. Only files that a lock file names, with a matching sha256, are executed.

A new server needs a lock in `locks/` and a file with its command line and a readiness check for
`process.ServerProcess`. `cli` uses this package for the demo, `tests/conftest.py` for its fixtures; product code
never does.
"""
