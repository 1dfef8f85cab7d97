"""The site that `make site` builds of the checkout's Markdown pages and of the docstrings.

Its root is that of the checkout, so that a link from page to page is the same in both.
"""

import sys
from pathlib import Path

import spgraph

sys.path.insert(0, str(Path(__file__).parent))

project = "spgraph"
author = project_copyright = "the spgraph authors"
version = release = spgraph.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "reference",
]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "notebooks/*", "benchmarks/*.md"]
include_patterns += ["spgraph/backends/*.md"]
exclude_patterns = [".*", "build", "dist", "tests", "CODE_OF_CONDUCT.md"]
nitpicky = True
myst_heading_anchors = 3
# notebooks are kept without outputs
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 280
nb_output_stderr = "warn"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# --- docstrings -----------------------------------------------------------------------------------

default_role = "py:name"
add_module_names = False
autodoc_member_order = "groupwise"
autosummary_generate = False
maximum_signature_line_length = 80

# --- how it looks ---------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = f"spgraph {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = html_copy_source = False
html_sidebars = {page: [] for page in ("docs/index", "docs/gallery")}
toc_object_entries_show_parents = "hide"
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": html_title},
    # beside the folders of the versions
    "switcher": {"json_url": "../versions.json", "version_match": version},
    "check_switcher": False,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["version-switcher", "theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 3,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
