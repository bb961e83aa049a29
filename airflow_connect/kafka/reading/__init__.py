"""Reading the records of a topic: as objects, or in columns."""
