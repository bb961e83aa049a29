"""Layer 7: one run, from configuration to report. Folders are named after where their code runs.

`driver/` is one process, `executor/` is many, `engine/` is Spark between them. Code in `executor/` can neither import
Airflow nor publish nor commit; import-linter enforces it.
"""
