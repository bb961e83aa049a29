"""The smallest sink and the smallest source."""
