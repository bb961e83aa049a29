"""Reading files of whole records as Arrow columns, one chain of files at a time."""
