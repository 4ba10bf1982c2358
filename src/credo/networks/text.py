"""Networks as a few words of text, for the command line and configuration files."""

import re
from typing import Any

from credo._text import nearest
from credo.networks.cnn import CNN
from credo.networks.mlp import MLP
from credo.networks.resnet import ResNet
from credo.networks.shortcut import ShortcutMLP
from credo.networks.zoo import ACTIVATIONS, ZooNetwork

EXAMPLES = "'table', 'linear', 'mlp:50,50' or 'mlp:50,50,relu'; of images also 'cnn' or 'resnet20'"
# The kinds, each with the hidden layers that it has where the text names none.
KINDS = {"linear": "", "mlp": "", "table": "30,30"}
# Of images: "resnet" has its number of layers after it.
_OF_IMAGES = re.compile(r"(cnn)|resnet(\d+)")


def is_table(network: Any) -> bool:
    """Whether a text asks for the network of `credo.models.table`.

    >>> is_table("table"), is_table("table:50"), is_table("linear")
    (True, True, False)
    """
    return isinstance(network, str) and network.strip().lower().partition(":")[0].rstrip() == "table"


def from_text(text: str, out: int) -> ZooNetwork:
    """The network that a text describes: "linear", or "mlp:" or "table:" with the units of each hidden layer.

    Arguments:
        text: "linear"; "mlp:50,50" for two hidden layers of 50 units; "mlp:50,50,relu" for an activation other than
            tanh, one of `credo.networks.zoo.ACTIVATIONS`; "table", or "table:50", for a `ShortcutMLP`. Capitals and
            spaces do not matter. For images, "cnn", or "resnet20" for a `ResNet` of 20 layers.
        out: the number of outputs.

    >>> from credo.networks import from_text
    >>> from_text("mlp:50,50,relu", 1).config
    {'name': 'MLP', 'features': [50, 50], 'out': 1, 'activation': 'relu', 'inputs': None, 'seed': 0}
    >>> from_text("linear", 3).features
    ()
    """
    if not isinstance(text, str):
        raise ValueError(f"network is of type {type(text).__name__}; pass text such as {EXAMPLES}")
    if found := _OF_IMAGES.fullmatch("".join(text.lower().split())):
        return CNN(out) if found[1] else ResNet(out, depth=int(found[2]))
    kind, colon, rest = "".join(text.lower().split()).partition(":")
    if kind not in KINDS:
        raise ValueError(f"network={text!r} is unknown{nearest(kind, KINDS)}; write {EXAMPLES}")
    if kind == "linear":
        if colon:
            raise ValueError(f"network={text!r}: a linear network has no hidden layers to set; write 'linear'")
        return MLP([], out)
    words = (rest if colon else KINDS[kind]).split(",")
    # A word at the end can only be the activation.
    named: dict[str, Any] = {"activation": _activation(words.pop(), text)} if _is_word(words[-1]) else {}
    if not words:
        raise ValueError(f"network={text!r} has no hidden layers; write {EXAMPLES}")
    made = ShortcutMLP if kind == "table" else MLP
    return made([_units(word, text) for word in words], out, **named)


def _is_word(part: str) -> bool:
    return part[:1].isalpha()


def _activation(word: str, text: str) -> str:
    if word not in ACTIVATIONS:
        raise ValueError(
            f"network={text!r}: {word!r} is neither a number of units nor an activation"
            f"{nearest(word, ACTIVATIONS)}; activations are {', '.join(sorted(ACTIVATIONS))}, and come last: {EXAMPLES}"
        )
    return word


def _units(word: str, text: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise ValueError(
            f"network={text!r}: {word!r} is not a number of units; write whole numbers from 1, separated by commas: "
            f"{EXAMPLES}"
        )
    return int(word)
