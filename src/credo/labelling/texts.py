"""A pool of lines of text."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from credo.labelling.pool import Pool, digest, numbered, require_items

# Directions of latent semantic analysis: Deerwester et al. (1990) found about a hundred to be best.
NUM_DIRECTIONS = 100
MAX_WORDS = 50_000


@dataclass(frozen=True, eq=False)
class TextPool(Pool):
    """Lines of text: a model sees them by latent semantic analysis, which learns from the lines without a label too."""

    lines: tuple[str, ...] = ()
    kind: ClassVar[str] = "text"
    # Directions of meaning add up; there is nothing for hidden units to find in a few hundred labels.
    network: ClassVar[str] = "linear"

    @classmethod
    def read(cls, path: Path) -> "TextPool":
        """The lines of a file that are not blank."""
        try:
            content = path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not text in UTF-8 ({error}); save it as UTF-8") from error
        lines = tuple(stripped for line in content.splitlines() if (stripped := line.strip()))
        require_items(path, lines, "write one item on each line")
        return cls(path, numbered(len(lines)), meanings(lines), tuple(map(digest, lines)), lines=lines)

    def text(self, item: str) -> str:
        """The line."""
        return self.lines[self.place(item)]


def meanings(texts: tuple[str, ...]) -> np.ndarray:
    """Latent semantic analysis: where each text lies in the main directions of words and pairs of words, (texts, D).

    Deerwester et al., "Indexing by latent semantic analysis" (1990).

    >>> meanings(("a good film", "a good book", "rain")).shape[0]
    3
    """
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_features=MAX_WORDS, token_pattern=r"\w+")
    try:
        counts = words.fit_transform(texts)
    except ValueError:  # not one word in all of them
        return np.zeros((len(texts), 1))
    num = min(NUM_DIRECTIONS, *(side - 1 for side in counts.shape))
    if num < 1:
        return np.asarray(counts.todense())
    found = TruncatedSVD(num, random_state=0).fit_transform(counts)
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
