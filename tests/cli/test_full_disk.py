"""A disk that is full: one line, and what was there before is still there."""

import subprocess

import pytest

from tests.cli.test_errors import one_line


@pytest.fixture
def full_disk(tmp_path):
    """A file system of its own, with a page and no room for another; only root may make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no rights to mount a small disk here")
    try:
        (disk / "page.html").write_text("the old page")
        (disk / "filler").write_bytes(bytes(40_000))
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_the_old_page_stays(credo, houses, run, full_disk):
    page = full_disk / "page.html"
    said = one_line(credo("evaluate", run, houses / "test.csv", "--quiet", "--report", page))
    assert "space" in said
    assert page.read_text() == "the old page"
    assert {path.name for path in full_disk.iterdir()} == {"page.html", "filler"}
