"""How Sphinx builds the documentation; the reference of commands and settings is written first."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from reference import write_reference  # noqa: E402  (it lies in the folder just named)

project = "repro"
version = release = installed("repro-papers")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "repro"
default_role = "code"  # one backtick is code in docstrings, as it is in Markdown
autodoc_typehints = "none"  # signatures have them
autodoc_member_order = "groupwise"
nitpicky = False
exclude_patterns = ["_build"]
linkcheck_ignore = ["https?://.*"]  # pages of others are not asked whether they are there


def setup(_app: object) -> None:
    """Write the pages that come from the code, before Sphinx looks for pages."""
    write_reference(HERE / "reference")
