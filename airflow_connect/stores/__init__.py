"""Floor 3: where files are staged and published. Two roles: `Stager` on executors, `Publisher` on the driver."""
