"""What wrong decisions cost, by name."""

import numpy as np
import pytest

from credo.tables.costs import costs_from

LABELS = ("mild", "sick", "well")


def test_costs_in_words_and_in_a_file(tmp_path):
    expected = np.array([[0, 1, 1], [1, 0, 10], [1, 0.5, 0]])
    np.testing.assert_array_equal(costs_from("sick->well:10, well->sick:.5", LABELS), expected)
    (tmp_path / "costs.csv").write_text("truth,decision,cost\nsick,well,10\nwell,sick,0.5\n")
    np.testing.assert_array_equal(costs_from(str(tmp_path / "costs.csv"), LABELS), expected)


@pytest.mark.parametrize(
    ("text", "labels", "words"),
    [
        ("sick->wel:10", LABELS, "names 'wel'; the classes are mild, sick, well; did you mean 'well'"),
        ("sick->well", LABELS, "write truth->decision:cost, such as sick->well:10, and not 'sick->well'"),
        ("sick->well:much", LABELS, "and not 'sick->well:much'"),
        ("sick->well:inf", LABELS, "is inf; write a finite number"),
        ("nowhere.csv", LABELS, "no file"),
        ("sick->well:10", (), "the target holds numbers"),
    ],
)
def test_costs_that_make_no_sense_are_refused(text, labels, words):
    with pytest.raises(ValueError, match=words):
        costs_from(text, labels)
