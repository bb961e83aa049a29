"""Floor 2: which object a record lands in. Pure functions of the log, the configuration and the run's clock."""
