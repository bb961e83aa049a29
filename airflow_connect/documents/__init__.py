"""Layer 3: the documents that driver, tasks and state topics exchange about a run: plans, reports, progress in time."""
