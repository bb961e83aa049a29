"""S3: multipart uploads are staged, and completing them publishes."""
