"""One self-contained HTML page: building blocks that return safe HTML, and the page around them."""

import base64
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from credo import _html
from credo._html import safe
from credo._version import __version__


@dataclass
class Section:
    """A titled part of the page, filled piece by piece."""

    title: str
    pieces: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")

    def text(self, words: str) -> None:
        """A paragraph."""
        self.pieces.append(_html.paragraph(words))

    def verdict(self, words: str, status: str = "") -> None:
        """A sentence that stands out, in the colour of its status: "green", "amber" or "red"."""
        self.pieces.append(_html.verdict(words, status))

    def code(self, words: str) -> None:
        """Text in a fixed-width font."""
        self.pieces.append(_html.code(words))

    def cards(self, figures: Iterable[tuple[str, str]]) -> None:
        """A few numbers at a glance: (value, what it is)."""
        cells = "".join(f'<div class="card"><b>{safe(v)}</b><span>{safe(w)}</span></div>' for v, w in figures)
        self.pieces.append(f'<div class="cards">{cells}</div>')

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[int] = ()) -> None:
        """A table; the columns in `numbers` are aligned to the right."""
        self.pieces.append(f'<div class="scroll">{_html.table(headings, rows, numbers)}</div>')

    def figure(self, svg: str, caption: str) -> None:
        """A picture, embedded in the page."""
        data = base64.b64encode(svg.encode()).decode()
        image = f'<img src="data:image/svg+xml;base64,{data}" alt="{safe(caption)}">'
        self.figures.append(f"<figure>{image}<figcaption>{safe(caption)}</figcaption></figure>")

    def html(self) -> str:
        pictures = f'<div class="figures">{"".join(self.figures)}</div>' if self.figures else ""
        return f'<section id="{self.anchor}"><h2>{safe(self.title)}</h2>{"".join(self.pieces)}{pictures}</section>'


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The whole page; opening it loads nothing from the network."""
    style = files("credo.reporting").joinpath("page.css").read_text(encoding="utf-8")
    links = "".join(f'<a href="#{section.anchor}">{safe(section.title)}</a>' for section in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # With an icon of its own, browsers do not ask a server for one.
        f'<link rel="icon" href="data:,"><title>{safe(title)}</title><style>\n{style}</style></head>\n<body>'
        f'<header><h1>{safe(title)}</h1><p class="lead">{safe(lead)}</p><nav>{links}</nav></header>\n'
        + "\n".join(section.html() for section in sections)
        + f"\n<footer>Written by credo {__version__}.</footer></body></html>\n"
    )
