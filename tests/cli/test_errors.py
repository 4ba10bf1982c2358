"""What goes wrong is one line that says what to do, exit code 2, and no traceback."""

import json
import os
import shutil

import msgspec
import pytest

from credo._manifest import Manifest
from credo.cli.errors import reported
from credo.inference.outcome import NonFiniteError
from tests.cli.conftest import QUICK


def one_line(result):
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("credo: ")
    return lines[0]


@pytest.mark.parametrize(
    ("content", "target", "words"),
    [
        (None, "price", "does not exist"),
        ("size,price\n1,2\n3,4\n", "prize", "did you mean 'price'"),
        ("size,price\n1,2\n3,4\n", None, "--target"),
        ("", "price", "is empty"),
        ("size,price\n", "price", "no rows"),
        (b"\x7fELF\x02\x01\x01\x00\x00\xff", "price", "UTF-8"),
        ("size,price\n1,2\n3,2\n", "price", "is always '2': there is nothing to learn"),
        ("size,price\n5,2\n5,3\n", "price", "no column to predict"),
    ],
)
def test_tables_that_cannot_be_fitted(credo, tmp_path, content, target, words):
    path = tmp_path / "train.csv"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    options = () if target is None else ("--target", target)
    assert words in one_line(credo("fit", path, *options, "--out", tmp_path / "run", *QUICK))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--method", "nutz"), "did you mean 'nuts'"),
        (("--method", "map", "--set", "num_step=3"), "did you mean 'num_steps'"),
        (("--set", "num_steps=3"), "name it with --method"),
        (("--method", "map", "--set", "optimizer=chain"), "optax has no 'chain'"),
        (("--method", "map", "--set", "optimizer=__class__"), "known are adabelief, adadelta"),
        (("--method", "map", "--set", f"learning_rate={'9' * 400}"), "pass a value of that type"),
        (("--method", "map", "--set", "learning_rate={name='map'}"), "pass a value of that type"),
        (("--method", "hmc", "--set", "path_length=none"), "cannot be None"),
        (("--method", "map", "--set", "num_steps=99999999999"), "must be at most 2,147,483,647"),
        (("--network", "mpl:50"), "did you mean 'mlp'"),
        (("--task", "regresion"), "did you mean 'regression'"),
        (("--task", "binary"), "choose --task multi-class"),
        (("--drop", "sise"), "did you mean 'size'"),
        (("--prior-scale", "-1"), "scale"),
        (("--monotone", "size"), "such as size:+,age:-, and not 'size'"),
        (("--monotone", "size:up"), "and not 'size:up'"),
        (("--monotone", ""), "and not ''"),
        (("--monotone", "size:+,size:-"), "cannot both rise (+) and fall (-) with 'size'"),
        (("--monotone", "sise:+"), "no column 'sise'; did you mean 'size'"),
        (("--monotone", "city:+"), "no direction (category of 3 levels"),
        (("--monotone", "id:-"), "columns with a direction are sold, size, garden"),
        (("--monotone", "price:+"), "(target: regression"),
        (("--monotone", "size:+", "--target", "city"), "has 3 classes"),
        (("--strength", "2"), "nothing to hold"),
        (("--smooth", "--strength", "-2"), "strength must be a positive number"),
    ],
)
def test_flags_that_do_not_fit(credo, houses, tmp_path, options, words):
    command = ("fit", houses / "train.csv", "--target", "price", "--out", tmp_path / "run")
    assert words in one_line(credo(*command, *options))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("Bern", "Paris"), "'Paris'"),
        (("Bern", "Paris"), "pass --unknown missing to treat such cells as missing"),
        (("city", "town"), "no column 'city'"),
        (("2020-", "spring "), "is date, and holds 'spring"),
    ],
)
def test_new_rows_that_do_not_fit(credo, houses, run, tmp_path, change, words):
    path = tmp_path / "new.csv"
    path.write_text((houses / "test.csv").read_text().replace(*change))
    said = one_line(credo("predict", run, path, "-o", tmp_path / "out.csv"))
    assert words in said
    assert not (tmp_path / "out.csv").exists()


def test_a_new_category_can_be_missing(credo, houses, run, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text((houses / "test.csv").read_text().replace("Bern", "Paris"))
    result = credo("predict", run, path, "-o", tmp_path / "out.csv", "--unknown", "missing")
    assert result.exit_code == 0, result.output
    assert "credo: note: column 'city' has missing cells" in result.stderr


def test_folders_that_are_no_run(credo, houses, tmp_path):
    assert "does not exist" in one_line(credo("inspect", tmp_path / "nowhere"))
    assert "is not a run" in one_line(credo("predict", tmp_path, houses / "test.csv"))


def test_a_run_that_has_not_ended(credo, houses, run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    msgspec.structs.replace(Manifest.read(copy), posterior=None).write(copy)
    assert "fit it again with --resume" in one_line(credo("predict", copy, houses / "test.csv"))
    assert f"to continue: credo fit --resume --out {copy}" in credo("inspect", copy).stdout


def test_a_run_of_a_newer_format(credo, houses, run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "run")
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(manifest | {"format_version": 99}))
    assert "install a newer credo" in one_line(credo("predict", copy, houses / "test.csv"))


@pytest.mark.parametrize("file", ["manifest.json", "columns.json", "arrays"])
def test_a_flipped_byte(credo, run, tmp_path, file):
    copy = shutil.copytree(run, tmp_path / "run")
    path = next(copy.glob(f"{file}*"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert "damaged" in one_line(credo("inspect", copy))


def test_a_name_that_is_not_utf8_cannot_be_written_down(credo, houses, tmp_path):
    table = tmp_path / os.fsdecode(b"caf\xe9.csv")
    table.write_bytes((houses / "train.csv").read_bytes())
    assert "not UTF-8" in one_line(credo("fit", table, "--target", "price", "--out", tmp_path / "run", *QUICK))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["compare", "simplify"])
def test_a_file_is_no_folder(credo, houses, run, command):
    table = houses / "train.csv"
    given = {"compare": ("compare", table, "--target", "price"), "simplify": ("simplify", run)}[command]
    assert "is a file, and --out names a folder" in one_line(credo(*given, "--out", table))


def test_verbose_shows_where_it_came_from(credo, tmp_path):
    result = credo("fit", tmp_path / "nowhere.csv", "--target", "y", "--verbose")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt("go on with --resume"), 130),
        (OSError("the disk is full"), 2),
        (OSError(28, "No space left on device"), 2),
        (NonFiniteError("NaN at step 3; lower the rate", 3), 2),
    ],
)
def test_exit_codes(error, code, capsys):
    def command():
        raise error

    with pytest.raises(Exception, match=str(code)) as stopped:
        reported(command)()
    assert stopped.value.exit_code == code
    said = capsys.readouterr().err
    assert (getattr(error, "strerror", None) or str(error)) in said
    assert "Errno" not in said


@pytest.mark.parametrize("kind", [TypeError, ZeroDivisionError])
def test_faults_of_our_own_are_not_hidden(kind):
    def command():
        raise kind("a fault")

    with pytest.raises(kind, match="a fault"):
        reported(command)()
