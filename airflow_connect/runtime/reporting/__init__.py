"""What a run says: plans, reports, notes and errors as text, without secrets."""
