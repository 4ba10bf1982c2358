"""Properties that are held for many examples within one case, which depend on its seed alone."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from tests.attack.outcomes import at_most


def hold(number: int, examples: int, claim: Callable[[Any], None], strategy: SearchStrategy[Any]) -> None:
    """Hold a claim for many examples of a strategy; one that fails is made as small as can be."""

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(strategy)
    def claimed(example: Any) -> None:
        with at_most(60):
            claim(example)

    claimed()
