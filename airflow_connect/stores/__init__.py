"""Floor 3: where files are staged and published. A store is two roles: `Stager` on executors, `Publisher` on the driver."""
