"""The task of a source: poll, convert, produce, commit."""
