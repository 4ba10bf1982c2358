"""`credo label --page`: where it listens, or why it does not."""

import socket

import pytest

from tests.labelling.serving import lines


@pytest.fixture
def label(credo, tmp_path):
    """The command on a small pool, with further options."""
    pool, out = lines(tmp_path), tmp_path / "labels.csv"
    return lambda *options: credo("label", pool, "--classes", "even,odd", "--out", out, "--page", *options)


def test_a_port_in_use_is_one_sentence(label):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = label("--port", port)
    assert result.exit_code == 2
    assert result.stderr.strip() == (
        f"credo: port {port} is in use; choose another with --port, or --port 0 for any that is free"
    )


def test_no_address_to_listen_at(label):
    result = label("--host", "256.1.1.1")
    assert result.exit_code == 2
    assert "no address to listen at" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
