"""Equations as MathML, which browsers draw themselves: no script, and nothing from the network.

docutils turns LaTeX into MathML; what it does not know is a warning, and so an error of the strict build. Few systems
have a font that says where indices belong, so that the site brings the letters it needs of one (STIX Two Math).
"""

import logging as logging_of_python
from pathlib import Path

import ziamath
from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from fontTools import subset
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)
logging_of_python.getLogger("fontTools").setLevel("WARNING")
FONT = Path(ziamath.__file__).parent / "fonts" / "STIXTwoMath-Regular.ttf"
# Latin and Greek letters, signs and arrows; bold, italic and script letters, double-struck ones, Greek italic.
RANGES = ((0x20, 0x180), (0x300, 0x400), (0x2000, 0x2300), (0x1D400, 0x1D504), (0x1D538, 0x1D56C), (0x1D6A8, 0x1D756))
LETTERS = [code for first, end in RANGES for code in range(first, end)]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    app.connect("build-finished", _write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write_font(app: Sphinx, error: Exception | None) -> None:
    written = Path(app.outdir) / "_static" / "math.woff"
    if error or app.builder.format != "html" or written.is_file():
        return
    options = subset.Options(flavor="woff", layout_features=["ssty"])
    font = subset.load_font(FONT, options)
    chosen = subset.Subsetter(options)
    chosen.populate(unicodes=LETTERS)
    chosen.subset(font)
    subset.save_font(font, written, options)


def _inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="equation">{_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def _mathml(node: nodes.Element, *, as_block: bool) -> str:
    try:
        return latex2mathml.tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        logger.warning("equation %r: %s", node.astext(), error, location=node)
        return node.astext()
