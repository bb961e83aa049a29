"""An HTTP service that runs drivers on its own machine, for Airflow tasks that do not hold a worker slot meanwhile.

1. A run is started at most once: its id, and the task that it is for, find the one that is there.
2. Nobody asks after a run for the time of the lease: its driver is ended. So a run whose task is lost ends by itself.
3. A driver never outlives the service: it reads the end of its standard input, however the service ends.
4. Ending a driver is safe at any moment (`exactly_once`), so 2. and 3. need no record on disk. The service keeps none.
5. A specification holds secrets. It stays in memory, only until its driver has it, and no answer or log contains it.
"""
