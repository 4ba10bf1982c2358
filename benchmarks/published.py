"""Published figures of the UCI regression benchmark: one hidden layer of 50 units (protein 100).

On the standard splits: PBP and deep ensembles from Lakshminarayanan et al., "Simple and scalable predictive uncertainty
estimation using deep ensembles" (2017), table 1; MC-dropout from the tables that Gal (2016) and Mukhoti et al. (2018)
published with their code. On splits of their own: mean-field VI of uncertainty-baselines, and of Wu et al. as given by
Izmailov et al. (2019). Errors are standard errors over the splits; of deep ensembles, standard deviations.
"""

from benchmarks.figures import Figure

PBP, DROPOUT, TUNED_DROPOUT, ENSEMBLES = "PBP", "MC-dropout 2016", "MC-dropout 2018", "deep ensembles"
SETS = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")

RMSE = {
    PBP: {
        "boston": Figure(3.01, 0.18),
        "concrete": Figure(5.67, 0.09),
        "energy": Figure(1.80, 0.05),
        "kin8nm": Figure(0.10),
        "naval": Figure(0.01),
        "power": Figure(4.12, 0.03),
        "protein": Figure(4.73, 0.01),
        "wine": Figure(0.64, 0.01),
        "yacht": Figure(1.02, 0.05),
    },
    DROPOUT: {
        "boston": Figure(2.97, 0.19),
        "concrete": Figure(5.23, 0.12),
        "energy": Figure(1.66, 0.04),
        "kin8nm": Figure(0.10),
        "naval": Figure(0.01),
        "power": Figure(4.02, 0.04),
        "protein": Figure(4.36, 0.01),
        "wine": Figure(0.62, 0.01),
        "yacht": Figure(1.11, 0.09),
    },
    TUNED_DROPOUT: {
        "boston": Figure(2.90, 0.18),
        "concrete": Figure(4.82, 0.16),
        "energy": Figure(0.54, 0.06),
        "kin8nm": Figure(0.08),
        "naval": Figure(0.00),
        "power": Figure(4.01, 0.04),
        "protein": Figure(4.27, 0.02),
        "wine": Figure(0.62, 0.01),
        "yacht": Figure(0.67, 0.05),
    },
    ENSEMBLES: {
        "boston": Figure(3.28, 1.00),
        "concrete": Figure(6.03, 0.58),
        "energy": Figure(2.09, 0.29),
        "kin8nm": Figure(0.09),
        "naval": Figure(0.00),
        "power": Figure(4.11, 0.17),
        "protein": Figure(4.71, 0.06),
        "wine": Figure(0.64, 0.04),
        "yacht": Figure(1.58, 0.48),
    },
}
# The mean log-likelihood of a test point: higher is better.
LOG_LIKELIHOOD = {
    PBP: {
        "boston": Figure(-2.57, 0.09),
        "concrete": Figure(-3.16, 0.02),
        "energy": Figure(-2.04, 0.02),
        "kin8nm": Figure(0.90, 0.01),
        "naval": Figure(3.73, 0.01),
        "power": Figure(-2.84, 0.01),
        "protein": Figure(-2.97, 0.00),
        "wine": Figure(-0.97, 0.01),
        "yacht": Figure(-1.63, 0.02),
    },
    DROPOUT: {
        "boston": Figure(-2.46, 0.06),
        "concrete": Figure(-3.04, 0.02),
        "energy": Figure(-1.99, 0.02),
        "kin8nm": Figure(0.95, 0.01),
        "naval": Figure(3.80, 0.01),
        "power": Figure(-2.80, 0.01),
        "protein": Figure(-2.89, 0.00),
        "wine": Figure(-0.93, 0.01),
        "yacht": Figure(-1.55, 0.03),
    },
    TUNED_DROPOUT: {
        "boston": Figure(-2.40, 0.04),
        "concrete": Figure(-2.93, 0.02),
        "energy": Figure(-1.21, 0.01),
        "kin8nm": Figure(1.14, 0.01),
        "naval": Figure(4.45, 0.00),
        "power": Figure(-2.80, 0.01),
        "protein": Figure(-2.87, 0.00),
        "wine": Figure(-0.93, 0.01),
        "yacht": Figure(-1.25, 0.01),
    },
    ENSEMBLES: {
        "boston": Figure(-2.41, 0.25),
        "concrete": Figure(-3.06, 0.18),
        "energy": Figure(-1.38, 0.22),
        "kin8nm": Figure(1.20, 0.02),
        "naval": Figure(5.63, 0.05),
        "power": Figure(-2.79, 0.04),
        "protein": Figure(-2.83, 0.02),
        "wine": Figure(-0.94, 0.12),
        "yacht": Figure(-1.18, 0.21),
    },
    "VI, uncertainty-baselines": {
        "boston": Figure(-3.12),
        "concrete": Figure(-3.22),
        "energy": Figure(-0.93),
        "naval": Figure(6.12),
        "yacht": Figure(-2.01),
    },
    "VI, Wu et al.": {
        "boston": Figure(-2.43),
        "concrete": Figure(-3.04),
        "energy": Figure(-2.38),
        "naval": Figure(5.87),
        "yacht": Figure(-1.68),
    },
}
