"""How the site is built: `make docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from extensions.inventories import packed  # noqa: E402

from credo import __version__  # noqa: E402

project = "credo"
copyright = "the authors of credo"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
    "extensions.commands",
    "extensions.docstrings",
    "extensions.figures",
    "extensions.mathml",
    "extensions.names",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "figures", "inventories"]
nitpicky = True
smartquotes = False

# Scripts are run once, and again when their text changes: in this process, so that they share what is compiled.
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/tutorial", "../examples/gallery"],
    "gallery_dirs": ["tutorial", "gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib",),
    "remove_config_comments": True,
    "show_memory": False,
    "abort_on_example_error": False,
    "doc_module": ("credo",),
    "reference_url": {"credo": None},
    "default_thumb_file": None,
    "nested_sections": False,
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
}

# Pages: Markdown as GitHub reads it, and equations between dollars.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "html_image"]
myst_heading_anchors = 3
default_role = "literal"
# An indented block without a language is an equation or what a program printed.
highlight_language = "none"
copybutton_selector = "div.highlight-python pre, div.highlight-console pre, div.highlight-default pre"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Reference: what the docstrings say, with short types.
autodoc_default_options = {
    "members": True,
    # Made by scikit-learn for its estimators, with its own documentation.
    "exclude-members": "set_fit_request, set_partial_fit_request, set_predict_request, set_score_request",
}
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
autosummary_generate = False

intersphinx_mapping = packed(HERE / "inventories", HERE / "_build" / "inventories")

html_theme = "furo"
html_title = "credo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_show_sphinx = False
