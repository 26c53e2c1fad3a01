"""Readers of training data, one per format, and one function that chooses the reader."""

from counterpoint.learn.formats.corpus import read_corpus
from counterpoint.learn.formats.ids import (
    read_collection,
    read_distillation,
    read_distillation_folder,
    read_id_triples,
    read_n_way,
    write_n_way,
)
from counterpoint.learn.formats.opening import open_training_data
from counterpoint.learn.formats.texts import read_dpr, read_text_triples, read_triplets

__all__ = [
    "open_training_data",
    "read_collection",
    "read_corpus",
    "read_distillation",
    "read_distillation_folder",
    "read_dpr",
    "read_id_triples",
    "read_n_way",
    "read_text_triples",
    "read_triplets",
    "write_n_way",
]
