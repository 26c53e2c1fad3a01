"""Scores of a query against a document, each with an explanation.

To add a scorer, write one file here that subclasses `Scorer`, one line below, and one example in the contract
suite.
"""

from counterpoint.score.dot import Dot
from counterpoint.score.maxsim import MaxSim
from counterpoint.score.mix import Mix
from counterpoint.score.scorer import Scorer, Sum
from counterpoint.score.zscore import ZScore

__all__ = ["Dot", "MaxSim", "Mix", "Scorer", "Sum", "ZScore"]
