"""Saved posteriors and runs, compared without loading them: nothing is computed."""

from pathlib import Path

from safetensors.numpy import load_file

from tests.attack.outcomes import Wrong


def bits(folder: Path) -> dict[str, bytes]:
    """What a saved posterior or a finished run consists of: each array, and each file that does not tell the time.

    Arrays that the manifest does not name belong to a posterior that was replaced, or that was never finished.
    """
    manifest = (folder / "manifest.json").read_text(encoding="utf-8")
    arrays = {
        name: repr((array.dtype, array.shape)).encode() + array.tobytes()
        for path in folder.glob("*.safetensors")
        if path.name in manifest
        for name, array in load_file(path).items()
    }
    if not arrays:
        raise Wrong("what was saved holds no arrays", sorted(path.name for path in folder.iterdir()))
    files = [folder / name for name in ("config.toml", "columns.json")]
    return arrays | {path.name: path.read_bytes() for path in files if path.exists()}


def require_same(folder: Path, *references: Path) -> None:
    """A run is, wholly, one of those that it may be."""
    found = bits(folder)
    if not any(found == bits(reference) for reference in references):
        first = bits(references[0])
        others = [name for name in found | first if found.get(name) != first.get(name)]
        raise Wrong("a run has other bits than it should", others[:8])
