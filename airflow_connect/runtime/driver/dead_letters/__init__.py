"""Dead letters on the driver: written, shown, replayed."""
