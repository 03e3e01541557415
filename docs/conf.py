"""Configuration of Sphinx; also writes the reference of commands and settings before a build."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from reference import write_reference  # noqa: E402  (found through sys.path, set above)

project = "repro"
version = release = installed_version("repro-papers")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "repro"
html_show_copyright = False
smartquotes = False  # "--" stays two hyphens in the help of options
default_role = "code"  # single backticks in docstrings are code, as in Markdown
autodoc_typehints = "none"  # the signatures contain the types
autodoc_member_order = "groupwise"
nitpicky = False
exclude_patterns = ["_build"]
linkcheck_ignore = ["https?://.*"]  # external links are not checked


def setup(_app: object) -> None:
    """Write the reference pages before Sphinx collects its sources."""
    write_reference(HERE / "reference")
