"""How large an index gets, and what searching it takes: the arithmetic of `counterpoint plan`."""

from counterpoint.scale.advice import Advice, Way, advice
from counterpoint.scale.fan_out import Quantiles, fan_out_level, slowest
from counterpoint.scale.figures import Figures, IndexKind, figures, kind_of
from counterpoint.scale.formulas import BUSY, FULL, Costs, Machine, Needs, Stage, Workload, needs_of
from counterpoint.scale.numbers import parse_bytes, parse_count, shown_bytes, shown_count, shown_hours

__all__ = [
    "BUSY",
    "FULL",
    "Advice",
    "Costs",
    "Figures",
    "IndexKind",
    "Machine",
    "Needs",
    "Quantiles",
    "Stage",
    "Way",
    "Workload",
    "advice",
    "fan_out_level",
    "figures",
    "kind_of",
    "needs_of",
    "parse_bytes",
    "parse_count",
    "shown_bytes",
    "shown_count",
    "shown_hours",
    "slowest",
]
