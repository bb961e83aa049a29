"""Object names and directory names."""
