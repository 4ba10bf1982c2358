"""What each method is good for: every method says it, and the page of the docs is what the code says."""

from pathlib import Path

import pytest

from credo.inference import catalogue, guide
from credo.inference.registry import METHODS

PAGE = Path(__file__).parents[2] / "docs" / "methods.md"


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_guide_of_its_own(name):
    kind = METHODS[name]
    assert isinstance(vars(kind).get("guide"), guide.Guide), f"{kind.__name__} has no guide; write one in its file"
    assert kind.guide.exact in guide.EXACTNESS
    assert all(vars(kind.guide).values())
    assert "guide" not in {setting.name for setting in catalogue.entry(name).settings}


@pytest.mark.parametrize("name", METHODS)
def test_every_setting_is_explained(name):
    one = catalogue.entry(name)
    assert one.what.endswith(".")
    for setting in one.settings:
        assert setting.default
        assert len(setting.meaning) > 5


def test_settings_are_read_off_the_code():
    settings = {setting.name: setting for setting in catalogue.entry("laplace").settings}
    assert settings["structure"].default == "'kronecker'"
    assert settings["training"].default == "MAP()"
    assert settings["rank"].meaning == 'of "low_rank".'
    # Inherited settings are explained by the class they come from; its own default stands.
    inherited = {setting.name: setting for setting in catalogue.entry("sghmc").settings}
    assert inherited["step_size"].default == "0.001"
    assert inherited["step_size"].meaning.startswith("per data point")


def test_a_setting_without_a_word_is_an_error():
    class Silent:
        """Nothing.

        Arguments:
            other: something else.
        """

    with pytest.raises(ValueError, match="no docstring says what rate means"):
        catalogue._meaning(Silent, "rate")


def test_what_can_be_derived_is_derived():
    assert catalogue.entry("nuts").example.num_parameters == 3152
    assert "4,000 draws, 50.4 MB, for a model of 3,152 parameters" in catalogue.entry("nuts").facts["stores"]
    assert catalogue.entry("laplace").abilities == dict.fromkeys(catalogue.entry("laplace").abilities, True)
    assert not any(catalogue.entry("nuts").abilities.values())


def test_the_page_of_the_docs_is_what_the_code_says():
    assert PAGE.read_text(encoding="utf-8") == catalogue.markdown(), "run `credo methods --markdown > docs/methods.md`"
