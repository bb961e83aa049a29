"""What an installation looks like to people: its connectors, their runs and their lag, for pages. Reads only.

Nothing here creates a topic, joins a group or commits. `watching.py` keeps what was read, so that a page never waits
for a broker that is down.
"""
