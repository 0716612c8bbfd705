"""How Sphinx builds the documentation; `make docs` calls it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
# Importing Airflow writes its configuration somewhere.
os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "WARNING"
os.environ["AIRFLOW_HOME"] = str(ROOT / "build" / "airflow-of-docs")

from docutils import nodes  # noqa: E402 - after what Airflow reads when it is imported

import airflow_provider_workspace  # noqa: E402 - from the path above

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "Workspace provider for Apache Airflow"
version = release = airflow_provider_workspace.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_design"]
# The table of faults is a part of the page about faults.
exclude_patterns = ["faults-table.md"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# References into the package itself must lead somewhere. Those to Airflow and others cannot, without a network.
nitpick_ignore_regex = [("py:.*", r"(?!airflow_provider_workspace).*"), ("py:.*", r".*\.T")]
add_module_names = False
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_default_options = {"show-inheritance": True, "exclude-members": "model_config"}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = f"Workspace provider {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False


def link_pictures(_app: Sphinx, doctree: nodes.document) -> None:
    """Let pictures of the Airflow UI lead to themselves in full size, as Sphinx does for those that are scaled."""
    for image in doctree.findall(nodes.image):
        if image["uri"].endswith(".png"):
            image["width"] = "100%"


def setup(app: Sphinx) -> None:
    """Extend Sphinx by the above."""
    app.connect("doctree-read", link_pictures)
