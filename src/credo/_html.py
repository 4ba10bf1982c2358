"""HTML for pages and notebooks: words, figures and tables, escaped whatever they hold.

Functions return safe HTML. `InNotebook` is what Jupyter, Colab, VS Code and Marimo look for: the value of a cell.
"""

from collections.abc import Collection, Iterable, Sequence
from html import escape

from credo._text import visible

# Colours are the notebook's own, so that it may be light or dark; lines and statuses are seen on both.
STYLE = """
.credo { max-width: 64rem; overflow-x: auto; line-height: 1.5; }
.credo p { margin: .4rem 0; }
.credo pre { margin: .4rem 0; background: none; color: inherit; white-space: pre; }
.credo table { border-collapse: collapse; margin: .4rem 0; font-variant-numeric: tabular-nums; }
.credo th, .credo td { text-align: left; padding: .2rem .7rem .2rem 0; border-bottom: 1px solid rgb(128 128 128 / .4); }
.credo th { font-weight: 600; opacity: .75; }
.credo .number { text-align: right; white-space: nowrap; }
.credo .verdict { border-left: 4px solid #2a6f97; padding: .1rem 0 .1rem .7rem; }
.credo .verdict.green { border-color: #2e7d4f; }
.credo .verdict.amber { border-color: #c98a00; }
.credo .verdict.red { border-color: #d0443c; }
"""


def safe(words: str) -> str:
    """Words as HTML that shows them, whatever they are."""
    return escape(visible(words))


def paragraph(words: str) -> str:
    """Words by themselves."""
    return f"<p>{safe(words)}</p>"


def verdict(words: str, status: str = "") -> str:
    """A sentence that stands out, in the colour of its status: "green", "amber" or "red"."""
    return f'<p class="{safe(f"verdict {status}".strip())}">{safe(words)}</p>'


def code(words: str) -> str:
    """Text in a fixed-width font."""
    return f"<pre>{safe(words)}</pre>"


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Collection[int] = (),
    *,
    best: Collection[tuple[int, int]] = (),
) -> str:
    """A table; the columns in `numbers` are aligned to the right, the cells in `best`, (row, column), are bold.

    Each cell says which column it is of (`data-is`): on a narrow page a wide row is shown as a list.
    """
    looks = [
        f' data-is="{safe(name)}"' + (' class="number"' if place in numbers else "")
        for place, name in enumerate(headings)
    ]

    def line(tag: str, cells: Sequence[str], bold: Collection[int] = ()) -> str:
        shown = [f"<b>{safe(cell)}</b>" if place in bold else safe(cell) for place, cell in enumerate(cells)]
        filled = "".join(f"<{tag}{look}>{cell}</{tag}>" for look, cell in zip(looks, shown, strict=True))
        return f"<tr>{filled}</tr>"

    body = "".join(
        line("td", row, [place for where, place in best if where == number]) for number, row in enumerate(rows)
    )
    wide = ' class="wide"' if len(headings) > 2 else ""
    return f"<table{wide}><thead>{line('th', headings)}</thead><tbody>{body}</tbody></table>"


def notebook(*pieces: str) -> str:
    """What a notebook shows of the pieces."""
    return f'<div class="credo"><style>{STYLE}</style>{"".join(pieces)}</div>'


class InNotebook:
    """A notebook shows what `print` does; who has tables says what to show instead.

    >>> class Greeting(InNotebook):
    ...     def __str__(self):
    ...         return "1 < 2"
    >>> Greeting()._repr_html_().endswith("</style><pre>1 &lt; 2</pre></div>")
    True
    """

    def _repr_html_(self) -> str:
        return notebook(code(str(self)))
