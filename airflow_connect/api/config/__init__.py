"""ConfigDef and its parts: types, checks, references, recommendations, and the forms it is shown in."""
