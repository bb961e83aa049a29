"""Layer 4: determines the object of each record: pure functions of the log, the configuration and the run's clock.

timestamp_extractors -> partitioners (directory) -> rotation (where a file ends) -> object_names (key).
Below: time_zones, calendar, date_patterns, locale_texts, iso_timestamps, escaping, schema_compatibility.
Only dense_codes and rotation_batches import numpy at their top: the reference path and planning load without
it.
"""
