"""Sphinx configuration of the documentation site. `build.py` lays out the pages that it reads."""

from __future__ import annotations

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from airflow_connect import __version__

project = "airflow_connect"
author = "the airflow_connect contributors"
release = version = __version__

extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
# Pages stay CommonMark with tables, so that they read well on a code host, too.
myst_heading_anchors = 4
nitpicky = True

html_theme = "furo"
html_title = f"airflow_connect {release}"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
copybutton_exclude = ".linenos, .gp, .go"
highlight_language = "text"


def setup(app: Sphinx) -> None:
    """The trees of docs/architecture.md are a language of their own there: a test compares them with the folders."""
    app.add_lexer("tree", TextLexer)
