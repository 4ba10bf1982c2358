"""Every setting that is named to a user is one that the method has."""

import re
from dataclasses import fields, replace

import pytest

import credo
from credo.diagnostics.chains import ChainDiagnostics, Convergence, judged
from credo.diagnostics.precision import Precision
from credo.diagnostics.status import Status, remedies
from credo.evaluation.check import call_of
from credo.inference.method import Method, Wrapper
from credo.inference.registry import METHODS
from credo.inference.settings import build

# name=…, or several words with underscores between them, in backquotes or not.
NAMED = re.compile(r"\b([a-z]+(?:_[a-z]+)*)(?==)|\b([a-z]+(?:_[a-z]+)+)\b")
CALL = re.compile(r"credo\.(\w+)\(([^()]*)\)")
WRONG = ChainDiagnostics(
    num_chains=4,
    num_draws=100,
    num_parameters=10,
    weights=None,
    functions=Convergence(40, rhat=2.0, ess_bulk=5, ess_tail=5),
    acceptance=0.5,
    num_divergences=3,
    ebfmi=0.1,
    precision=Precision(mean=1.0, ends=1.0, disagreement=2.0),
    advice=(),
)
CASES = {
    "all is wrong": WRONG,
    "one chain": replace(WRONG, num_chains=1, precision=Precision(0.2, 0.2, None)),
    "independent but few": replace(WRONG, functions=Convergence(40, rhat=1.0, ess_bulk=400, ess_tail=400)),
    "nothing to judge by": replace(WRONG, functions=None),
}


def names_in(text: str) -> set[str]:
    """The settings that a text names, without those of methods that it makes."""
    return {first or second for first, second in NAMED.findall(CALL.sub("", text))}


def settings(method: Method) -> set[str]:
    """The settings of a method and of those within it."""
    own = {item.name for item in fields(method)}
    return own | (settings(method.inner) if isinstance(method, Wrapper) else set())


@pytest.mark.parametrize("name", METHODS)
def test_guides_name_settings_that_there_are(name: str) -> None:
    method = METHODS[name]()
    said = (getattr(method.words, item.name) for item in fields(method.words))
    texts = [text for text in said if isinstance(text, str)]
    # Values of a setting are in quotes, such as subset='last_layer'.
    text = re.sub(r"'[^']*'", "", " ; ".join(texts))
    assert names_in(text) <= settings(method)
    for other, arguments in CALL.findall(" ; ".join(texts)):
        named = {item.name for item in fields(getattr(credo, other))}
        assert {found[0] for found in NAMED.findall(arguments) if found[0]} <= named


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", METHODS)
def test_advice_names_settings_that_there_are(name: str, case: str) -> None:
    method = METHODS[name]()
    answers = judged(CASES[case], settings=method.to_config())
    own = {item.name for item in fields(method)}
    assert any(answer.status is not Status.GREEN for answer in answers)
    for answer in answers:
        assert names_in(answer.advice) <= own
    better = build(name, remedies(answers))  # which checks each setting and its value
    assert eval(call_of(better.to_config()), {"credo": credo}) == better


@pytest.mark.parametrize("frozen", [[1], [0, 1, 2, 3]])
@pytest.mark.parametrize("name", METHODS)
def test_advice_on_chains_that_stand_still_does_too(name: str, frozen: list[int]) -> None:
    method = METHODS[name]()
    own = {item.name for item in fields(method)}
    for answer in judged(WRONG, frozen, method.to_config()):
        assert names_in(answer.advice) <= own


def test_there_is_advice_with_and_without_an_aim() -> None:
    assert remedies(judged(WRONG, settings=credo.NUTS().to_config()))["target_acceptance"] == 0.95
    assert "target_acceptance" not in remedies(judged(WRONG, settings=credo.MCLMC().to_config()))
