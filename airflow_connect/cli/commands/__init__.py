"""One module per verb, each with `NAME`, `HELP`, `add_arguments(parser)` and `run(arguments, terminal) -> Outcome`."""
