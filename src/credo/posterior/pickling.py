"""Posteriors in other processes: the files that `save` writes, and the models that `load` is to be given."""

import copyreg
import tempfile
from pathlib import Path
from typing import Any

from credo.models.program import Model
from credo.posterior.loading import KINDS, load


def _reduced(posterior: Any) -> tuple[Any, ...]:
    """A posterior for `pickle`: a function, and what it is to be called with."""
    with tempfile.TemporaryDirectory() as folder:
        posterior.save(folder)
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    return loaded, (files, posterior.models)


def loaded(files: dict[str, bytes], models: list[Model]) -> Any:
    """The posterior in these files, of these models."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        return load(folder, model=models if len(models) > 1 else models[0])


for kind in KINDS.values():
    copyreg.pickle(kind, _reduced)
