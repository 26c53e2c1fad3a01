"""Contract checks for your own parts, such as `check_scorer(lambda: Mine("words"))`."""

from counterpoint.testing.codecs import check_codec
from counterpoint.testing.heads import check_head
from counterpoint.testing.losses import check_loss
from counterpoint.testing.parts import check_part
from counterpoint.testing.scorers import check_scorer
from counterpoint.testing.transforms import check_transform

__all__ = ["check_codec", "check_head", "check_loss", "check_part", "check_scorer", "check_transform"]
