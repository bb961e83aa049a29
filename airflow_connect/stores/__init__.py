"""Layer 5: stores in which files are staged and published.

Two roles: `Stager` on executors, `Publisher` on the driver.
"""
