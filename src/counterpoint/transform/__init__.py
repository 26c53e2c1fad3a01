"""Maps from one vector set to another, learnt without labels.

A new transform is one file here that subclasses `Transform`, one line below, and one example in the contract
suite. `Moments` is there for those that need a mean or a covariance.
"""

from counterpoint.transform.moments import Moments
from counterpoint.transform.normalise import Normalise
from counterpoint.transform.transform import Transform
from counterpoint.transform.whitening import Whitening

__all__ = ["Moments", "Normalise", "Transform", "Whitening"]
