"""Collections of documents, queries and judgements, in common formats.

`open_collection` reads them, `write_*` functions write them, and `cut_passages` cuts documents into passages.
Nothing here needs torch, and nothing holds a corpus in memory.
"""

from counterpoint.data.answers import read_answers
from counterpoint.data.choice import FileChoice
from counterpoint.data.collection import Collection, Source
from counterpoint.data.export import (
    BEIR,
    DocumentLayout,
    write_beir,
    write_colbert,
    write_documents,
    write_queries,
)
from counterpoint.data.fields import Columns, Fields
from counterpoint.data.items import collection_of, items_of
from counterpoint.data.passages import PASSAGE_WORDS, cut_passages
from counterpoint.data.policy import ReadPolicy, ReadReport
from counterpoint.data.reader import Located, Reader
from counterpoint.data.sources import Format, open_collection
from counterpoint.data.tables import read_queries
from counterpoint.data.trec import (
    QrelsLayout,
    TrecRun,
    is_trec_run,
    read_qrels,
    read_trec_run,
    write_qrels,
    write_trec_run,
)
from counterpoint.data.wordnet import NltkThesaurus, Thesaurus, WordNetFolder, open_thesaurus

__all__ = [
    "BEIR",
    "PASSAGE_WORDS",
    "Collection",
    "Columns",
    "DocumentLayout",
    "Fields",
    "FileChoice",
    "Format",
    "Located",
    "NltkThesaurus",
    "QrelsLayout",
    "ReadPolicy",
    "ReadReport",
    "Reader",
    "Source",
    "Thesaurus",
    "TrecRun",
    "WordNetFolder",
    "collection_of",
    "cut_passages",
    "is_trec_run",
    "items_of",
    "open_collection",
    "open_thesaurus",
    "read_answers",
    "read_qrels",
    "read_queries",
    "read_trec_run",
    "write_beir",
    "write_colbert",
    "write_documents",
    "write_qrels",
    "write_queries",
    "write_trec_run",
]
