"""A prediction of one row is what a service and a loop wait for: after the first, the program is not run again."""

import numpy as np
import numpyro
import numpyro.distributions as dist

import credo


def test_the_program_is_not_traced_again_for_another_row() -> None:
    runs = []

    def program(x, y=None):
        runs.append(x.shape)
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal(slope * x[:, 0], 0.1), obs=y)

    x = np.linspace(-1, 1, 20)[:, None]
    posterior = credo.fit(credo.Model(program), (x, x[:, 0]), credo.MAP(num_steps=5), progress=False)

    def ask(row: np.ndarray) -> None:
        prediction = posterior.predict(row)
        assert prediction.mean.shape == prediction.std.shape == prediction.interval(0.9)[0].shape == (1,)
        prediction.log_prob(np.zeros(1))

    ask(x[:1])
    runs.clear()
    ask(x[1:2])
    assert runs == []
