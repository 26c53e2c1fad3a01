"""Sweeps: evaluate a grid of models, collections, workflows and settings, resume, and report."""

from counterpoint.sweep.cells import Cell, SweepModel
from counterpoint.sweep.encodings import CachedModel
from counterpoint.sweep.grid import CollectionEntry, Grid, ModelEntry
from counterpoint.sweep.plan import Failure, Loader, SweepPlan, plan_sweep
from counterpoint.sweep.read import read_grid
from counterpoint.sweep.run import Watch, run_sweep

__all__ = [
    "CachedModel",
    "Cell",
    "CollectionEntry",
    "Failure",
    "Grid",
    "Loader",
    "ModelEntry",
    "SweepModel",
    "SweepPlan",
    "Watch",
    "plan_sweep",
    "read_grid",
    "run_sweep",
]
