"""Topics and consumer groups: find, create, query."""
