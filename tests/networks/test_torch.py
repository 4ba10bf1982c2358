"""PyTorch modules become networks that agree with them, and stay as they were."""

import pytest

from tests.networks.torch_zoo.agreement import FULL, SMALL, agreement


def check_agreement(make, rows, output):
    """Values to 1e-4 of their size, gradients to 1e-3 of theirs: what the product promises."""
    found = agreement(make, rows, output)
    assert found.values < 1e-4
    assert found.gradients < 1e-3


@pytest.mark.parametrize("name", SMALL)
def test_zoo_agrees_with_pytorch(name):
    check_agreement(*SMALL[name])


@pytest.mark.full
@pytest.mark.parametrize("name", FULL)
def test_zoo_agrees_with_pytorch_at_full_size(name):
    check_agreement(*FULL[name])
