"""Measures of retrieval."""

from counterpoint.measure.adversarial import Adversary, Tally, perturb
from counterpoint.measure.answers import has_answer, judged_by_answers
from counterpoint.measure.compare import CompareSettings, Comparison, Pair, compare
from counterpoint.measure.compared import comparison_data, comparison_tables
from counterpoint.measure.complements import shared_tables, slices_table, wins_table
from counterpoint.measure.effects import Effect, Summary, random_effects, standardised_mean_difference
from counterpoint.measure.evaluate import NOTHING_JUDGED, Report, evaluate, nothing_judged
from counterpoint.measure.folds import (
    CrossValidation,
    Fold,
    cross_validate,
    read_folds,
    split_folds,
    write_folds,
)
from counterpoint.measure.holes import condense, with_judging
from counterpoint.measure.names import depth_of, parse_measure
from counterpoint.measure.overlap import Overlap, Shared, share_of
from counterpoint.measure.significance import (
    WinTieLoss,
    bonferroni,
    bootstrap_interval,
    holm,
    paired_t_test,
    randomisation_test,
    two_sample_t_test,
    win_tie_loss,
)
from counterpoint.measure.slices import (
    Slicing,
    means_over,
    relevant_documents,
    slice_by_field,
    slice_by_length,
    slice_by_rank,
    slice_by_width,
    wins_over,
)
from counterpoint.measure.storage import stored_bytes
from counterpoint.measure.synthesis import Synthesis, synthesise
from counterpoint.measure.tables import Cell, Table, as_latex, as_markdown, as_text
from counterpoint.measure.tuning import Tuned, TunedShares, all_shares, tune_shares, tune_weight

__all__ = [
    "NOTHING_JUDGED",
    "Adversary",
    "Cell",
    "CompareSettings",
    "Comparison",
    "CrossValidation",
    "Effect",
    "Fold",
    "Overlap",
    "Pair",
    "Report",
    "Shared",
    "Slicing",
    "Summary",
    "Synthesis",
    "Table",
    "Tally",
    "Tuned",
    "TunedShares",
    "WinTieLoss",
    "all_shares",
    "as_latex",
    "as_markdown",
    "as_text",
    "bonferroni",
    "bootstrap_interval",
    "compare",
    "comparison_data",
    "comparison_tables",
    "condense",
    "cross_validate",
    "depth_of",
    "evaluate",
    "has_answer",
    "holm",
    "judged_by_answers",
    "means_over",
    "nothing_judged",
    "paired_t_test",
    "parse_measure",
    "perturb",
    "random_effects",
    "randomisation_test",
    "read_folds",
    "relevant_documents",
    "share_of",
    "shared_tables",
    "slice_by_field",
    "slice_by_length",
    "slice_by_rank",
    "slice_by_width",
    "slices_table",
    "split_folds",
    "standardised_mean_difference",
    "stored_bytes",
    "synthesise",
    "tune_shares",
    "tune_weight",
    "two_sample_t_test",
    "win_tie_loss",
    "wins_over",
    "wins_table",
    "with_judging",
    "write_folds",
]
