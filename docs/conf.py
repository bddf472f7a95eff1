"""Configuration of the documentation site, which ``make docs`` builds into build/site.

The source folder is the repository: links between pages of docs/, README.md, CONTRIBUTING.md and
CHANGELOG.md lead to pages of the site, links to other files to copies of them.
"""

import importlib.metadata
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import reference_pages
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

reference_pages.write(Path(__file__).parent / "reference" / "generated")

project = "cytape"
author = "the cytape developers"
copyright = "the cytape developers, Apache-2.0"
version = release = importlib.metadata.version("cytape")

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md", "docs/**.rst", "docs/**.ipynb",
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "examples/**README.md",
]
exclude_patterns = [
    ".*", "build", "dist", "bench", "cytape", "tests", "examples/output", "**/__pycache__",
]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!cytape\.).*")]  # arguments, and names of other packages
default_role = "py:obj"

myst_heading_anchors = 4
html_math_renderer = "mathml"
myst_enable_extensions = ["colon_fence", "dollarmath"]
nb_execution_mode = "cache"
nb_execution_cache_path = "../build/notebooks"
nb_execution_raise_on_error = True
nb_execution_timeout = 60

numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autodoc_typehints = "none"

toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = "cytape"
html_static_path = ["_static"]
html_extra_path = ["_root"]
html_css_files = ["site.css"]
html_sidebars = {"README": [], "docs/tutorial": []}
html_favicon = "_static/logo.svg"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "cytape", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}


def visit_math(writer, node):
    """Write a formula as MathML, which browsers show without a script from another host."""
    is_block = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext(), as_block=is_block)
    writer.body.append(f'<div class="math">{formula}</div>' if is_block else formula)
    raise nodes.SkipNode


def resolve_name_at_the_top(app, env, node, content):
    """Resolve cytape.gather, say, which has its entry as cytape.ops.gather."""
    package, _, name = node.get("reftarget", "").rpartition(".")
    if package == "cytape" and node.get("refdomain") == "py":
        return env.domains.python_domain.resolve_xref(
            env, node["refdoc"], app.builder, "obj", reference_pages.home(name), node, content)


def signature_without_self(app, what, name, found, options, signature, annotation):
    """Return the signature of a method that is a compiled function, which autodoc does not bind."""
    bound = re.sub(r"^\((\w+ )?self(, )?", "(", signature or "")
    changed = what == "method" and signature and bound != signature
    return (bound, annotation) if changed else None


def setup(app):
    app.connect("autodoc-process-signature", signature_without_self, priority=400)
    app.connect("missing-reference", resolve_name_at_the_top)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
