"""Shell completion. The names are written out so that a tab need not wait for JAX; a test keeps them right."""

METHODS = (
    "auto",
    "mle",
    "map",
    "metropolis",
    "hmc",
    "nuts",
    "mclmc",
    "parallel_tempering",
    "sgld",
    "sghmc",
    "sgnht",
    "swag",
    "laplace",
    "closed_form",
    "mc_dropout",
    "bayes_by_backprop",
    "ivon",
    "deep_ensemble",
)
NETWORKS = ("table", "linear", "mlp:50", "mlp:50,50", "mlp:50,50,relu", "cnn", "resnet20")


def complete_method(incomplete: str) -> list[str]:
    """Methods that start like this."""
    return [name for name in METHODS if name.startswith(incomplete)]


def complete_methods(incomplete: str) -> list[str]:
    """The last of a list of methods, separated by commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_method(last)]


def complete_network(incomplete: str) -> list[str]:
    """Networks that start like this."""
    return [name for name in NETWORKS if name.startswith(incomplete)]
