"""The configurations of connector and worker, merged, typed and checked."""
