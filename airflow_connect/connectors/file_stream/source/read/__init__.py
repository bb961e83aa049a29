"""Step 2: from the bytes of a file to its lines and events."""
