"""Step 3: from lines to records, as whole lines or split into fields."""
