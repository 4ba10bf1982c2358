"""Explaining: which inputs a posterior goes by, how, and what makes it unsure of single rows."""

from credo.explaining.dependence import Dependence
from credo.explaining.explain import Explanation, explain
from credo.explaining.importance import Importance
from credo.explaining.unsure import UnsureRow

__all__ = ["Dependence", "Explanation", "Importance", "UnsureRow", "explain"]
