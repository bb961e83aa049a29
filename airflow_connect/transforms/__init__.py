"""Transformations and predicates of Kafka Connect, with the same meaning and the same messages (KIP-66, KIP-585).

One module per transformation. Each has the *record form* `apply`, where every rule and every error lives; the common
ones also have the *columnar form* `apply_columns`, which returns None for anything that is not vectorizable.

- `shared/of_key_or_value.py`: what transformations share that come as `X.Key` and `X.Value`
- `shared/values.py`: what a value must be, and what Java would call it in a message
- `shared/fields.py`: paths to fields (KIP-821), new struct schemas made from old ones, the cache that holds them
- `shared/names.py`: lists of names in configurations
- `columnar/structs.py`: the fields of a struct as Arrow columns, and back
- `columnar/casts.py`, `columnar/timestamps.py`: what Cast and TimestampConverter do to them
- `simple_date_format.py`: Java's date patterns

Never imported by `api`; may import `api` and `converters`.
"""
