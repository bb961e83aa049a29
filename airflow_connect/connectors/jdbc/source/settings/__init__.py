"""The keys of the JDBC source, the rules between them, and the typed configuration."""
