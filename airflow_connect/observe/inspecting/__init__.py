"""What the command line shows of topics, files, offsets and runs, and what it warns of. Reads only, joins no group."""
