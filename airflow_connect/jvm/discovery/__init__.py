"""Which Java plugins there are: the folders of a `plugin.path`, scanned without Java, and their names.

`registry.py: use_plugin_path` is the way in.
"""
