"""Folders of runs: killed between any two steps they hold the old run or the new one, whole, and a way to go on."""

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from credo import _files, _folders
from credo._folders import CheckpointError, opened
from credo._manifest import MANIFEST, Manifest
from credo.inference.engine.fit_folder import FitFolder, Place
from tests.kills import Killed


def place(folder: Path, run: str, *, overwrite: bool = False) -> Place:
    return Place(folder, {"config.toml": f"seed = '{run}'".encode(), "columns.json": run.encode() * 3}, overwrite)


def begin(folder: Path, run: str, *, resume: bool = False, overwrite: bool = False) -> None:
    with FitFolder(place(folder, run, overwrite=overwrite), {"seed": run}, resume=resume):
        pass


def whole_run(folder: Path) -> str:
    """The run that a folder holds, all of whose files are its own."""
    held = opened(folder)
    assert held.fit is not None
    run = held.fit["seed"]
    assert {name: held.file(folder, name) for name in held.files} == dict(place(folder, run).files)
    return run


def killed_before(number: int, patched: pytest.MonkeyPatch) -> None:
    """Kill the process before its step of that number in the file system."""
    steps = iter(range(1, 10_000))

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            if next(steps) == number:
                raise Killed
            return original(*arguments, **options)

        return step

    for name in ("mkdir", "rename", "replace", "unlink", "rmdir"):
        patched.setattr(Path, name, counted(getattr(Path, name)))
    patched.setattr(shutil, "rmtree", counted(shutil.rmtree))


def folders_of_the_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: str, before: Callable[[Path], None], **options: bool
) -> Iterator[Path]:
    """What a process leaves that is killed before its first step, then one that is before its second, and so on."""
    for number in range(1, 100):
        folder = tmp_path / f"run{number}"
        before(folder)
        with monkeypatch.context() as patched:
            killed_before(number, patched)
            try:
                begin(folder, run, **options)
            except Killed:
                pass
            else:
                assert number > 8
                return
        yield folder
    raise AssertionError("it never came to its end")


def test_a_new_run_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    for folder in folders_of_the_killed(monkeypatch, tmp_path, "a", lambda folder: None):
        if _folders.holds_a_run(folder):
            other = Path(shutil.copytree(folder, tmp_path / "other"))
            begin(other, "b", overwrite=True)
            assert whole_run(other) == "b"
            shutil.rmtree(other)
            assert whole_run(folder) == "a"
        begin(folder, "a", resume=True)
        assert whole_run(folder) == "a"
        assert {path.name for path in folder.iterdir()} == {MANIFEST, "config.toml", "columns.json"}


def test_a_run_that_is_replaced_is_whole_until_the_new_one_is(tmp_path, monkeypatch):
    def old_run(folder: Path) -> None:
        begin(folder, "a")
        (folder / "checkpoint" / "0").mkdir(parents=True)
        (folder / "notes.txt").write_text("mine")

    seen = set()
    for folder in folders_of_the_killed(monkeypatch, tmp_path, "b", old_run, overwrite=True):
        run = whole_run(folder)
        seen.add(run)
        assert (folder / "notes.txt").read_text() == "mine"
        assert (folder / "checkpoint" / "0").exists() == (run == "a")
        begin(folder, run, resume=True)
        begin(folder, "c", overwrite=True)
        assert whole_run(folder) == "c"
        assert {path.name for path in folder.iterdir()} == {MANIFEST, "config.toml", "columns.json", "notes.txt"}
    assert seen == {"a", "b"}


def test_others_files_stay(tmp_path):
    """Also those that are called as ours are, where there was no run before."""
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "weights.pt").write_text("days of work")
    (tmp_path / "arrays-mine.safetensors").write_text("arrays")
    begin(tmp_path, "a")
    assert (tmp_path / "checkpoint" / "weights.pt").exists()
    assert (tmp_path / "arrays-mine.safetensors").exists()


def test_of_several_that_begin_at_once_one_begins(tmp_path):
    """Each has other files; those of the folder are all of the same run."""
    refused, barrier = [], threading.Barrier(8)

    def run(name: str) -> None:
        barrier.wait()
        try:
            begin(tmp_path / "run", name)
        except (ValueError, CheckpointError) as error:
            refused.append(str(error))

    threads = [threading.Thread(target=run, args=(str(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7
    assert all("another process is at work" in text or "has not ended" in text for text in refused)
    assert whole_run(tmp_path / "run") in map(str, range(8))


def test_what_differs_is_named(tmp_path):
    begin(tmp_path, "a")
    with pytest.raises(ValueError, match=r"its seed, columns.json and config.toml differ"):
        begin(tmp_path, "b", resume=True)
    with pytest.raises(ValueError, match="holds a run that has not ended"):
        begin(tmp_path, "a")


def test_an_altered_identity_is_refused(tmp_path):
    begin(tmp_path, "a")
    path = tmp_path / MANIFEST
    path.write_text(path.read_text().replace('"seed": "a"', '"seed": "b"'))
    with pytest.raises(_files.LoadError, match="altered after it was saved"):
        begin(tmp_path, "b", resume=True)
    begin(tmp_path, "b", overwrite=True)  # which is a way out
    assert whole_run(tmp_path) == "b"


def test_a_run_that_an_earlier_version_left_can_be_replaced(tmp_path):
    (tmp_path / "fit.json").write_text("{}")
    with pytest.raises(ValueError, match="of an earlier version"):
        begin(tmp_path, "a", resume=True)
    begin(tmp_path, "a", overwrite=True)
    assert not (tmp_path / "fit.json").exists()


@pytest.mark.parametrize("name", ["../columns.json", "a/b", ".hidden", "/etc/passwd", ""])
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    Manifest({name: "0" * 64}).write(tmp_path)
    with pytest.raises(_files.LoadError, match="does not hold what it should"):
        Manifest.read(tmp_path)


def test_no_link_leads_out_of_the_folder(tmp_path):
    begin(tmp_path / "run", "a")
    outside = shutil.move(tmp_path / "run" / "columns.json", tmp_path / "columns.json")
    (tmp_path / "run" / "columns.json").symlink_to(outside)
    with pytest.raises(_files.LoadError, match="leads out of its folder"):
        whole_run(tmp_path / "run")


@pytest.mark.parametrize("depth", [60, 100_000])
def test_nesting_is_bounded(tmp_path, depth):
    (tmp_path / MANIFEST).write_text(
        '{"format": "credo-posterior", "fit": ' + '{"a":' * depth + "1" + "}" * (depth + 1)
    )
    with pytest.raises(_files.LoadError, match=r"nested|not JSON"):
        Manifest.read(tmp_path)


def test_a_full_disk_is_told_with_the_file_and_its_size(tmp_path, monkeypatch):
    def full(self, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"config.toml could not be written: No space left.* needs 5 MB, and .* are free"):
        _files.put_bytes(tmp_path / "config.toml", bytes(5_000_000))
    assert list(tmp_path.iterdir()) == []
