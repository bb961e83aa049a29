"""Signed HTTP requests to S3: connections, proxies, redirects, signatures."""
