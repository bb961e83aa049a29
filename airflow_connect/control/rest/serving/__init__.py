"""The servers of the REST API: where they listen, TLS, who is let in, and what surrounds the application."""
