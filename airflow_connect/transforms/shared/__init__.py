"""What transformations have in common."""
