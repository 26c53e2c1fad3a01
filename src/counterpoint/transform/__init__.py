"""Maps from one vector set to another, learnt without labels.

To add a transform, write one file here that subclasses `Transform`, one line below, and one example in the
contract suite. Use `Moments` if it needs a mean or a covariance.
"""

from counterpoint.transform.flow import Flow, FlowBits, FlowTraining
from counterpoint.transform.glow import Glow
from counterpoint.transform.moments import Moments
from counterpoint.transform.nice import Nice
from counterpoint.transform.normalise import Normalise
from counterpoint.transform.transform import FittedTransform, Transform
from counterpoint.transform.whitening import Whitening

__all__ = [
    "FittedTransform",
    "Flow",
    "FlowBits",
    "FlowTraining",
    "Glow",
    "Moments",
    "Nice",
    "Normalise",
    "Transform",
    "Whitening",
]
