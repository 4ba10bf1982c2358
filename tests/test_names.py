"""Every public name is there as soon as `credo` is imported, and nothing else has to be imported before it."""

import subprocess
import sys

SCRIPT = """
import credo

assert credo.random.normal(credo.random.key(0), (3,)).shape == (3,)
missing = [name for name in credo.__all__ if getattr(credo, name, None) is None]
assert credo.__all__ and not missing, missing
assert set(credo.__all__) <= set(dir(credo))
"""


def test_public_names_in_a_fresh_process():
    result = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
