"""Stochastic gradient Langevin dynamics: gradient ascent with noise, on minibatches, that samples the posterior.

Paper, "MCMC algorithms based on the SGD dynamic", Algorithm SGLD, in its correct form: it ascends the log joint (it is
printed with a minus), and the prior counts once (the update equation has it twice).

Welling & Teh, "Bayesian learning via stochastic gradient Langevin dynamics" (2011).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from credo.inference.guide import Guide, Reach
from credo.inference.sgmcmc.dynamics import SMALLER_STEPS, Dynamics
from credo.typing import Theta


@dataclass(frozen=True, kw_only=True)
class SGLD(Dynamics):
    """Stochastic gradient Langevin dynamics: an SGD step and noise of matching size.

        theta ← theta + ε/2 · ∇log p(theta, D) + √ε · η,    η ~ N(0, I),    ε = step_size/N

    There is no accept step. With a constant ε the draws are from the posterior up to a bias of order ε (a normal
    posterior of precision λ is sampled with variance 1/(λ(1 − ελ/4))), plus that of the minibatches' gradient noise;
    `credo.evaluation.discretisation_bias` estimates it. With a decreasing ε the bias vanishes in time; the draws are
    then weighted by their step sizes, as in Welling & Teh (2011). In cycles (Zhang et al., 2020) all draws weigh alike.

    The default step_size: for networks of 50 and of 50-50 hidden units on standardised regression with 100 to 10,000
    rows, ten times as much is plainly biased, and a tenth has not arrived after the warm-up.

    >>> SGLD(num_samples=500, num_warmup=1000, thin=10, batch_size=32).plan().num_steps
    6000
    >>> SGLD(num_samples=40, num_warmup=1000, thin=10, num_cycles=4, restart="prior").plan().num_records
    10
    """

    guide: ClassVar[Guide] = Guide(
        exact="up to its step size",
        benefits="a Markov chain from minibatches, at the price of SGD",
        limits="biased by step size and gradient noise; stays around one mode unless it restarts",
        use_cases="sampling with data too large for full gradients",
        stores="every kept draw of theta",
        costs="one gradient of a minibatch per step, and noise for every weight",
        reaches=Reach(0.4, (0.8, 1.3)),
        if_non_finite=SMALLER_STEPS,
    )

    def move(self, theta: Theta, drift: Theta, scale: Theta, noise: Theta, aux: Any) -> tuple[Theta, Any]:
        return {name: theta[name] + drift[name] + scale[name] * noise[name] for name in theta}, aux
