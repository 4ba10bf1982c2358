"""The loop: rounds, oracles, folders that survive, and rounds that compile nothing."""

import numpy as np
import pytest

import credo
from credo._files import read_json
from credo.learning.active import OracleError
from credo.learning.answers import FILE
from tests.inference.engine.test_growing import compilations

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
LABELS = (X[:, 0] + X[:, 1] > 0).astype(int)
NUMBERS = X[:, 0] - X[:, 1]
QUICK = credo.DeepEnsemble(credo.MAP(num_steps=40, learning_rate=0.05), members=3)


def classifier(**options):
    return credo.models.classification(credo.networks.MLP([4], out=2, inputs=2), **options)


def regression():
    return credo.models.regression(credo.networks.MLP([4], out=1, inputs=2))


def run(model, pool, oracle, method=QUICK, *settings, **options):
    return list(credo.active(model, pool, oracle, method, *settings, **options))


def same(some, others):
    return [(one.number, one.num_labels, one.asked.tolist()) for one in some] == [
        (one.number, one.num_labels, one.asked.tolist()) for one in others
    ]


def test_rounds_learn_and_the_same_seed_gives_the_same_rounds():
    options = {"batch": 5, "stop": 12, "test": (X, LABELS)}
    rounds = run(classifier(), X, LABELS, **options)
    assert [one.num_labels for one in rounds] == [5, 10, 12]
    assert [len(one.asked) for one in rounds] == [5, 2, 0]
    assert rounds[0].scores.shape == (40,)
    assert rounds[-1].scores is None
    assert rounds[-1].test["accuracy"] > 0.6
    assert set(rounds[-1].test) == {"accuracy", "nll"}
    asked = np.concatenate([one.asked for one in rounds])
    assert len(set(asked.tolist())) == len(asked)
    assert np.array_equal(rounds[-1].data.labelled.nonzero()[0], sorted([*asked, *_first(rounds)]))
    assert same(rounds, run(classifier(), X, LABELS, **options))
    assert not same(rounds, run(classifier(), X, LABELS, **options, seed=1))


def _first(rounds):
    return rounds[0].data.labelled.nonzero()[0].tolist()


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_round_after_the_first_compiles_nothing(kind):
    model, oracle, acquisition = {
        "classes": (classifier(), LABELS, "batch_bald"),
        "numbers": (regression(), NUMBERS, "bald"),
    }[kind]
    pool = credo.Data(X, np.where(np.arange(40) < 4, oracle, None), standardise=True)
    rounds = credo.active(
        model, pool, oracle, credo.BayesByBackprop(num_steps=15), acquisition, 3, 13, test=(X, oracle)
    )
    next(rounds)
    with compilations() as names:
        found = list(rounds)
    assert [one.num_labels for one in found] == [7, 10, 13]
    assert names == []


def test_labels_of_the_pool_are_a_beginning():
    pool = credo.Data(X, np.where(np.arange(40) < 6, LABELS, None))
    rounds = run(classifier(), pool, LABELS, QUICK, "bald", 4, 10)
    assert [one.num_labels for one in rounds] == [6, 10]
    assert min(rounds[0].asked) >= 6


@pytest.mark.parametrize("acquisition", ["epig", "variance", lambda predictive: predictive.epistemic])
def test_other_acquisitions_in_the_loop(acquisition):
    rounds = run(regression(), X, NUMBERS, QUICK, acquisition, 3, 6, test=(X, NUMBERS))
    assert set(rounds[-1].test) == {"rmse", "nll"}


def test_stop_may_be_a_function_of_the_round():
    seen = []

    def enough(one):
        seen.append(one)
        return one.number == 2

    rounds = run(classifier(), X, LABELS, batch=4, stop=enough)
    assert [one.num_labels for one in rounds] == [4, 8]
    assert len(seen[-1].asked) == 4
    assert len(rounds[-1].asked) == 0


def test_an_exhausted_pool_ends_politely():
    rounds = run(classifier(), X[:7], LABELS[:7], batch=4)
    assert [one.num_labels for one in rounds] == [4, 7]
    assert len(rounds[-1].asked) == 0


def test_an_oracle_that_cannot_tell_is_not_asked_again():
    asked = []

    def oracle(row):
        asked.append(row)
        return None if row % 2 else LABELS[row]

    rounds = run(classifier(), X[:12], oracle, batch=4)
    assert sorted(asked) == list(range(12))
    assert rounds[-1].num_labels == 6


def test_an_oracle_that_never_can_tell():
    with pytest.raises(ValueError, match="cannot tell the target of any row"):
        run(classifier(), X[:5], lambda row: None, batch=2)


class Fails:
    """An oracle that fails at one of its calls, once."""

    def __init__(self, at):
        self.at, self.asked = at, []

    def __call__(self, row):
        if len(self.asked) == self.at:
            self.at = None
            raise ConnectionError("gone")
        self.asked.append(row)
        return LABELS[row]


def test_a_failing_oracle_loses_nothing_in_memory():
    oracle = Fails(at=6)
    with pytest.raises(OracleError, match=r"the oracle failed at row .* \(gone\)") as caught:
        run(classifier(), X, oracle, batch=4, stop=12)
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert set(caught.value.data.labelled.nonzero()[0]) == set(oracle.asked)
    rounds = run(classifier(), caught.value.data, oracle, batch=4, stop=12)
    assert rounds[0].num_labels == 6
    assert len(set(oracle.asked)) == len(oracle.asked) == 12


@pytest.mark.parametrize("warm_start", [False, True])
def test_a_run_that_was_stopped_goes_on_to_the_same_rounds(tmp_path, warm_start):
    method = credo.BayesByBackprop(num_steps=15) if warm_start else QUICK
    options = {"method": method, "batch": 4, "stop": 16, "warm_start": warm_start}
    whole = run(classifier(), X, LABELS, **options)
    oracle = Fails(at=10)
    with pytest.raises(OracleError, match="resume=True"):
        run(classifier(), X, oracle, **options, checkpoint=tmp_path)
    rest = run(classifier(), X, oracle, **options, checkpoint=tmp_path, resume=True)
    assert same(rest, whole[2:])
    assert len(set(oracle.asked)) == len(oracle.asked) == 16
    for name, leaf in whole[-1].posterior.sample(credo.random.key(0), 3).items():
        np.testing.assert_array_equal(rest[-1].posterior.sample(credo.random.key(0), 3)[name], leaf)
    assert same(run(classifier(), X, oracle, **options, checkpoint=tmp_path, resume=True), whole[-1:])


def test_every_answer_is_on_disk_before_the_next_question(tmp_path):
    def oracle(row):
        seen.append(len(read_json(tmp_path / FILE)["answers"]))
        return NUMBERS[row]

    seen: list[int] = []
    run(regression(), X, oracle, batch=3, stop=6, checkpoint=tmp_path)
    assert seen == [0, 1, 2, 3, 4, 5]


def test_folders_of_others_are_refused(tmp_path):
    options = {"batch": 4, "stop": 4, "checkpoint": tmp_path}
    run(classifier(), X, LABELS, **options)
    with pytest.raises(ValueError, match="holds answers; pass resume=True"):
        run(classifier(), X, LABELS, **options)
    with pytest.raises(ValueError, match="holds another run: its pool differ"):
        run(classifier(), X + 1, LABELS, **options, resume=True)
    (tmp_path / FILE).write_text((tmp_path / FILE).read_text().replace("answers", "answer"))
    with pytest.raises(credo.LoadError, match="altered"):
        run(classifier(), X, LABELS, **options, resume=True)


def test_several_targets_of_which_some_are_missing():
    targets = np.stack([NUMBERS, -NUMBERS], axis=1)
    targets[::3, 1] = np.nan
    model = credo.models.regression(credo.networks.MLP([4], out=2, inputs=2))
    rounds = run(model, X, targets, QUICK, "log_det", 4, 12)
    np.testing.assert_array_equal(rounds[-1].data.y[rounds[-1].data.labelled], targets[rounds[-1].data.labelled])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pool": np.empty((0, 2))}, "empty"),
        ({"oracle": LABELS[:5]}, "oracle has shape \\(5,\\), and the pool 40 rows"),
        ({"batch": 0}, "batch must be a whole number of at least 1"),
        ({"stop": 0}, "stop must be a whole number of at least 1"),
        ({"initial": 41}, "initial is 41, and the pool has 40 rows"),
        ({"initial": [1, 50]}, "initial is \\[1, 50\\]"),
        ({"acquisition": "best"}, "acquisition is 'best'"),
        ({"resume": True}, "checkpoint names none"),
        ({"method": "nots"}, "unknown method 'nots'"),
    ],
)
def test_bad_input_is_refused_before_anything_is_asked(options, message):
    def oracle(row):
        raise AssertionError("asked")

    given = {"model": classifier(), "pool": X, "oracle": oracle, **options}
    with pytest.raises(ValueError, match=message):
        credo.active(**given)


def test_answers_that_are_none_are_refused():
    with pytest.raises(OracleError, match="the oracle answered 'cat'"):
        run(classifier(), X, lambda row: "cat", batch=2, stop=2)


def test_an_ensemble_has_no_warm_start():
    with pytest.raises(ValueError, match="start: the members of an ensemble"):
        run(classifier(), X, LABELS, batch=2, stop=4, warm_start=True)
