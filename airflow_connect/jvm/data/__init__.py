"""Connect's data as it crosses between Python and a plugin host: schemas, and values by their schema."""
