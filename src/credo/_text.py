"""Words for messages and errors."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

# Categories of Unicode: control, format, surrogate, separators of lines and of paragraphs.
OBEYED = ("Cc", "Cf", "Cs", "Zl", "Zp")
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint to append to an error: `; did you mean 'nuts'?`, or nothing if no known word is similar.

    >>> nearest("nutz", ["nuts", "hmc"])
    "; did you mean 'nuts'?"
    """
    match = get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f"; did you mean {match[0]!r}?" if match else ""


def size_in_words(num_bytes: float) -> str:
    """A size that people read.

    >>> size_in_words(3_500_000)
    '3.5 MB'
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.3g} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.3g} TB"


def seconds_of(name: str, text: str) -> float:
    """A time that people write, in seconds.

    >>> seconds_of("budget", "10s"), seconds_of("budget", "1.5 m"), seconds_of("budget", "90")
    (10.0, 90.0, 90.0)
    """
    number, unit = text.strip(), 1.0
    if number[-1:] in SECONDS:
        number, unit = number[:-1], SECONDS[number[-1]]
    try:
        seconds = unit * float(number)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{name} is {text!r}; write a time such as 30s, 2m or 1h")
    return seconds


def visible(text: str) -> str:
    """Text without characters that a terminal, a page or a picture would obey: escapes stand in their place.

    They are control characters but for line ends and tabs, marks that turn the direction of writing, and halves of
    characters, as a file name has them that is not UTF-8.

    >>> print(visible("red \x1b[31m, reversed \u202e, naïve"))
    red \\x1b[31m, reversed \\u202e, naïve
    """
    if text.isprintable():
        return text
    return "".join(_escaped(letter) if unicodedata.category(letter) in OBEYED else letter for letter in text)


def in_one_line(text: str, max_characters: int) -> str:
    """Text for a sentence: no line ends, no characters that a terminal would obey, and not too much of it.

    >>> in_one_line("two\\nlines", 20), in_one_line("endless", 3)
    ('two lines', 'end…')
    """
    line = visible(" ".join(text.split()))
    return line if len(line) <= max_characters else f"{line[:max_characters]}…"


def _escaped(letter: str) -> str:
    return letter if letter in "\n\t\u200c\u200d" else letter.encode("unicode_escape").decode()
