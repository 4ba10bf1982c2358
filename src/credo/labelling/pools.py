"""Reading pools: rows of a table, images of a folder, lines of text, arrays."""

from pathlib import Path

from credo.labelling.images import ArrayPool, FolderPool
from credo.labelling.pool import Pool
from credo.labelling.rows import RowPool
from credo.labelling.texts import TextPool
from credo.tables.arrays import plain_arrays
from credo.tables.files import SUFFIXES
from credo.tables.source import Source
from credo.tables.target import label_texts

TEXT_SUFFIX = ".txt"


def read_pool(path: str | Path | Source, *, target: str | None = None) -> Pool:
    """The items in a file or a folder, as a model sees them and as a person does.

    Arguments:
        path: a table (.csv, .tsv, .xlsx, .parquet, .npz), a folder of images, lines of text (.txt), or an .npz with
            images x of shape (items, height, width), or (items, height, width, channels); a `Source` also says how a
            table is written.
        target: the column that people are asked for; where it has values already, those are labels to begin with.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rooms.csv"
    ...     _ = path.write_text("city,size,kind\\nBern,3,\\nRome,4,flat\\n")
    ...     pool = read_pool(path, target="kind")
    >>> pool.fields("1"), dict(pool.given)
    ((('city', 'Bern'), ('size', '3')), {'2': 'flat'})
    """
    how = Source.of(path)
    source = Path(how.path)
    if not source.exists():
        raise FileNotFoundError(f"{source} does not exist; check the name and the folder")
    if source.is_dir():
        _refuse_words(how, target)
        return FolderPool.read(source)
    name = source.name.lower()
    if name.endswith(TEXT_SUFFIX):
        _refuse_words(how, target)
        return TextPool.read(source)
    if name.endswith(".npz"):
        return _arrays(how, target)
    if not name.endswith(tuple(SUFFIXES)):
        known = ", ".join((*SUFFIXES, TEXT_SUFFIX))
        raise ValueError(f"{source} has an unknown suffix; name a folder of images, or a file that ends in {known}")
    return RowPool.read(how, target)


def _arrays(source: Source, target: str | None) -> Pool:
    """Images where x has more than two axes, rows of a table otherwise."""
    path = Path(source.path)
    arrays = dict(plain_arrays(path))
    if "x" not in arrays or arrays["x"].ndim < 3:
        return RowPool.read(source, target)
    if target is not None and target not in arrays:
        raise ValueError(f"{path} has no array {target!r}; it has {', '.join(arrays)}")
    images = arrays["x"]
    labels = [None] * len(images) if target is None else label_texts(arrays[target])
    if len(labels) != len(images):
        raise ValueError(f"{path} holds {len(images)} images in x and {len(labels)} labels in {target!r}")
    return ArrayPool.of(path, images, {str(n): label for n, label in enumerate(labels, 1) if label is not None})


def _refuse_words(source: Source, target: str | None) -> None:
    """Refuse what is said of tables alone."""
    for name, value in (source.told if target is None else {"target": target}).items():
        raise ValueError(f"{name} is {value!r}, and {source.path} is no table with columns; leave it out")
