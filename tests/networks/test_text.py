"""Networks in a few words of text."""

import pytest

from credo.networks import MLP, from_text


@pytest.mark.parametrize(
    ("text", "features", "activation"),
    [
        ("linear", (), "tanh"),
        ("mlp:50", (50,), "tanh"),
        ("mlp:50,50", (50, 50), "tanh"),
        ("mlp:50,20,relu", (50, 20), "relu"),
        (" MLP: 8, 8, SiLU ", (8, 8), "silu"),
    ],
)
def test_a_text_names_a_network(text, features, activation):
    net = from_text(text, 3)
    assert isinstance(net, MLP)
    assert (net.features, net.out, net.activation) == (features, 3, activation)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mpl:50", "did you mean 'mlp'"),
        ("resnet", "write 'table', 'linear', 'mlp:50,50' or 'mlp:50,50,relu'"),
        ("", "is unknown"),
        ("linear:3", "no hidden layers to set"),
        ("mlp", "'' is not a number of units"),
        ("mlp:", "'' is not a number of units"),
        ("mlp:50,", "'' is not a number of units"),
        ("mlp:tanh", "has no hidden layers"),
        ("mlp:50,0", "'0' is not a number of units"),
        ("mlp:-5,50", "'-5' is not a number of units"),
        ("mlp:50,2.5", "'2.5' is not a number of units"),
        ("mlp:relu,50", "'relu' is not a number of units"),
        ("mlp:50,rulu", "did you mean 'relu'"),
    ],
)
def test_other_texts_are_refused(text, said):
    with pytest.raises(ValueError, match="network=") as error:
        from_text(text, 1)
    assert repr(text) in str(error.value)
    assert said in str(error.value)


def test_not_a_text():
    with pytest.raises(ValueError, match="type MLP; pass text such as"):
        from_text(MLP([5], 1), 1)


def test_outputs_are_checked():
    with pytest.raises(ValueError, match="out must be a whole number of at least 1, got 0"):
        from_text("linear", 0)
