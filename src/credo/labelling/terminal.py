"""Labelling at the terminal: one item after the other, with what the model believes, and a key for each answer."""

import io
from collections.abc import Callable, Mapping
from contextlib import nullcontext

import numpy as np
from PIL import Image
from rich.color import Color
from rich.console import Console, Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from credo._text import visible
from credo.labelling.cards import Belief, Card, Progress
from credo.labelling.keys import Reader, Said, class_keys, meaning
from credo.labelling.session import Labelling

BAR = 30
# Pixels of an image across; two of them are a character high.
PIXELS = 48
DONE = "all is labelled"
WAIT = "the rest is in the hands of others"


def label_at_terminal(
    labelling: Labelling, labeller: str, *, console: Console | None = None, read: Callable[[], str | None] | None = None
) -> int:
    """Ask one person until all is labelled, or the person has had enough; returns how many answers stand of theirs.

    Arguments:
        labeller: the name of the person.
        console: where to show things.
        read: the next key or line, and None at the end; by default from the standard input.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rich.console import Console
    >>> import credo
    >>> keys = iter(["1", "2"])  # in place of a person's
    >>> with TemporaryDirectory() as folder, open(f"{folder}/shown.txt", "w") as shown:
    ...     pool, labels = Path(folder) / "reviews.txt", Path(folder) / "labels.csv"
    ...     _ = pool.write_text("a fine film\\ntoo long\\n")
    ...     with credo.labelling.opened(pool, labels, classes=["good", "bad"]) as labelling:
    ...         read = lambda: next(keys, None)
    ...         credo.labelling.label_at_terminal(labelling, "ana", console=Console(file=shown), read=read)
    2
    """
    shown = Console() if console is None else console
    with nullcontext(read) if read is not None else Reader(labelling.classes).ready() as source:
        shown.print(Text(help_line(labelling.classes), style="dim"))
        _ask(labelling, labeller, shown, source)
    return sum(answer.labeller == labeller for said in labelling.said().values() for answer in said)


def oracle_at_terminal(
    labelling: Labelling, labeller: str, *, console: Console | None = None, read: Callable[[], str | None] | None = None
) -> Callable[[int], int | None]:
    """A person at the terminal as the oracle of `credo.active`: from a row of the pool to the number of its class.

    What is answered already is not asked again; where the person skips an item, flags it or finds no class, the oracle
    cannot tell. The end of the input, and an undo of what the loop has taken already, are an `EOFError`. The arguments
    are those of `label_at_terminal`.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rich.console import Console
    >>> import credo
    >>> keys = iter(["2", "1"])  # in place of a person's
    >>> with TemporaryDirectory() as folder, open(f"{folder}/shown.txt", "w") as shown:
    ...     pool, labels = Path(folder) / "reviews.txt", Path(folder) / "labels.csv"
    ...     _ = pool.write_text("a fine film\\ntoo long\\n")
    ...     with credo.labelling.opened(pool, labels, classes=["good", "bad"]) as labelling:
    ...         read, silent = lambda: next(keys, None), Console(file=shown)
    ...         oracle = credo.labelling.oracle_at_terminal(labelling, "ana", console=silent, read=read)
    ...         oracle(1), oracle(0)
    (1, 0)
    """
    shown, reader = Console() if console is None else console, read or Reader(labelling.classes)

    def oracle(row: int) -> int | None:
        item = labelling.pool.ids[row]
        known = next(iter(labelling.said().get(item, ())), None)
        if known is None:
            shown.print(rendered(labelling.card(item), labelling, shown))
            said = _said(labelling, shown, reader)
            if said is None or said.action == "undo" or said.action == "quit":
                raise EOFError(
                    "the person at the terminal has ended it, or wants something back that is learned already"
                )
            known = labelling.answer(labeller, item, said.action, said.label)
        return None if known.label is None else labelling.classes.index(known.label)

    return oracle


def _ask(labelling: Labelling, labeller: str, console: Console, read: Callable[[], str | None]) -> None:
    while cards := labelling.next(labeller):
        console.print(rendered(cards[0], labelling, console))
        said = _said(labelling, console, read)
        if said is None or said.action == "quit":
            return
        if said.action != "undo":
            labelling.answer(labeller, cards[0].item, said.action, said.label)
            console.print(Text(f"→ {visible(said.label or said.action)}", style="bold"))
        elif labelling.undo(labeller) is None:
            console.print(Text("there is nothing to undo", style="dim"))
    progress = labelling.progress()
    console.print(DONE if progress.num_done == progress.num_items else WAIT)


def _said(labelling: Labelling, console: Console, read: Callable[[], str | None]) -> Said | None:
    """What the person means; asked again until it means something."""
    while (word := read()) is not None:
        if not word:
            continue
        try:
            return meaning(word, labelling.classes)
        except ValueError as error:
            console.print(Text(f"{error}; {help_line(labelling.classes)}", style="dim"))
    return None


def rendered(card: Card, labelling: Labelling, console: Console) -> RenderableType:
    """A question: how far the work has come, the item, what the model believes of it, and why it is asked."""
    head = Text(progress_line(labelling.progress()), style="dim")
    parts: list[RenderableType] = [head, _item(card, labelling, console)]
    if card.belief is not None:
        parts.append(_bars(card.belief, class_keys(labelling.classes)))
    return Group("", *parts, Text(f"why: {visible(card.reason)}", style="dim"))


def progress_line(progress: Progress) -> str:
    """How far the work has come, in a line.

    >>> progress_line(Progress(num_items=9, num_labels=2, num_done=2, by_class={}, by_labeller={}))
    '2 of 9 labelled; still needed: too early to tell'
    """
    parts = [f"{progress.num_labels:,} of {progress.num_items:,} labelled"]
    if progress.curve:
        last = progress.curve[-1]
        parts.append(f"the model is about {last.accuracy:.0%} right ({last.low:.0%} to {last.high:.0%})")
    parts.append(f"still needed: {progress.still_needed}")
    return "; ".join([*parts, *filter(None, [progress.problem])])


def help_line(classes: tuple[str, ...]) -> str:
    """The keys, in a line."""
    keys = class_keys(classes)
    by_class = {name: "/".join(key for key, chosen in keys.items() if chosen == name) for name in classes}
    named = "  ".join(f"[{key}] {visible(name)}" if key else visible(name) for name, key in by_class.items())
    return f"{named}  [space] skip  [n] none of these  [f] flag  [backspace] undo  [q] end"


def _item(card: Card, labelling: Labelling, console: Console) -> RenderableType:
    if card.kind == "row":
        table = Table.grid(padding=(0, 2))
        for name, value in card.fields:
            table.add_row(Text(visible(name), style="dim"), Text(visible(value)))
        return table
    if card.kind == "text":
        return Text(visible(card.text))
    place = Text(visible(str(labelling.pool.path / card.item)))
    if not console.is_terminal:
        return place
    return Group(_picture(labelling.pool.image(card.item)[0]), place)


def _bars(belief: Mapping[str, Belief], keys: Mapping[str, str]) -> Table:
    """The probability of each class, and in lighter strokes where nine in ten of the sampled models put it."""
    table = Table.grid(padding=(0, 1))
    first = {name: key for key, name in reversed(list(keys.items()))}
    for name, one in belief.items():
        solid, reach = round(BAR * one.mean), round(BAR * one.high)
        bar = Text("█" * solid + "░" * max(reach - solid, 0))
        told = Text(f"{one.mean:4.0%}  ({one.low:.0%} to {one.high:.0%})", style="dim")
        table.add_row(Text(first.get(name, "")), Text(visible(name)), bar, told)
    return table


def _picture(content: bytes) -> Text:
    """An image of coloured characters, each the upper of two pixels in front of the lower one."""
    with Image.open(io.BytesIO(content)) as image:
        height = max(2, round(PIXELS * image.height / image.width / 2) * 2)
        pixels = np.asarray(image.convert("RGB").resize((PIXELS, min(height, PIXELS))))
    text = Text()
    for upper, lower in zip(pixels[::2], pixels[1::2], strict=True):
        for front, back in zip(upper, lower, strict=True):
            text.append("▀", Style(color=Color.from_rgb(*front), bgcolor=Color.from_rgb(*back)))
        text.append("\n")
    return text
