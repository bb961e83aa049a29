"""Where reading resumes: Confluent's offsets, ranges of a first load, where a table begins, rows sent lately."""
