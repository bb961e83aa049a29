"""What the author of a plugin tells a suite: how to configure it, and where its results are."""
