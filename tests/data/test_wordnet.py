"""Synonyms from small dictionaries: a folder's, and one in Princeton's own format as nltk reads it."""

import gzip
import json

import pytest

from counterpoint.data import NltkThesaurus, WordNetFolder, open_thesaurus
from counterpoint.errors import ConfigError, DataError

SYNSETS = {
    "car": ["car", "auto", "motorcar", "motor vehicle"],
    "railcar": ["car", "railcar"],
    "study": ["survey", "study", "e-study"],
    "learn": ["study", "hit the books"],
    "read": ["study", "con"],
    "cancer": ["cancer", "tumour"],
    "sign": ["Cancer", "Crab"],
    "Turkey": ["Turkey", "Türkiye"],
    "big": ["big", "large"],
}
SENSES = [
    ("car", "n", 0, "car"), ("car", "n", 1, "railcar"), ("study", "n", 0, "study"),
    ("study", "v", 0, "learn"), ("study", "v", 1, "read"),
    ("Cancer", "n", 0, "sign"), ("cancer", "n", 0, "cancer"),
    ("Turkey", "n", 0, "Turkey"), ("big", "a", 0, "big"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    rows = [json.dumps({"id": name, "members": members}) + "\n" for name, members in SYNSETS.items()]
    (tmp_path / "synsets.jsonl.gz").write_bytes(gzip.compress("".join(rows).encode()))
    (tmp_path / "lemma_senses.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in SENSES))
    return tmp_path


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("car", [("auto", "motorcar"), ("railcar",)]),  # sense after sense, single words only
        ("cars", [("auto", "motorcar"), ("railcar",)]),
        ("studies", [("survey",), ("con",)]),  # the noun's first sense, then the verb's second
        ("studied", [("con",)]),  # a verb only
        ("studying", [("con",)]),
        ("bigger", [("large",)]),
        ("cared", []),  # neither `care` nor `car` as a verb
        ("big", [("large",)]),
        ("cancer", [("tumour",), ("Crab",)]),  # not the sign first
        ("turkey", [("Türkiye",)]),
        ("unknown", []),
        ("s", []),
    ],
)
def test_synonyms_by_hand(folder, word, expected):
    assert list(WordNetFolder(folder).synonyms(word)) == expected


def test_what_is_refused(folder, tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        open_thesaurus(str(tmp_path / "absent"))
    (folder / "lemma_senses.tsv").write_text("car\tn\t0\tcar\ncar\tn\tx\tcar\n")
    with pytest.raises(DataError, match=r"lemma_senses.tsv:2: expected lemma, part of speech"):
        list(open_thesaurus(str(folder)).synonyms("car"))
    (folder / "lemma_senses.tsv").write_text("car\tn\t0\tplane\n")
    with pytest.raises(DataError, match="a known synset"):
        list(WordNetFolder(folder).synonyms("car"))
    (folder / "synsets.jsonl.gz").write_bytes(gzip.compress(b'{"id": "car"}\n'))
    with pytest.raises(DataError, match="a list 'members'"):
        list(WordNetFolder(folder).synonyms("car"))
    (folder / "synsets.jsonl.gz").unlink()
    with pytest.raises(DataError, match="no synsets.jsonl or synsets.jsonl.gz"):
        WordNetFolder(folder)


def princeton(folder):
    """A WordNet of three nouns in two synsets: `index.noun` says where in `data.noun` each stands."""
    folder.mkdir(parents=True)
    for part in ("adj", "adv", "noun", "verb"):
        for name in (f"index.{part}", f"data.{part}", f"{part}.exc"):
            (folder / name).write_text("")
    for name in ("cntlist.rev", "index.sense"):
        (folder / name).write_text("")
    (folder / "lexnames").write_text("".join(f"{n:02}\tpart{n}\t1\n" for n in range(45)))
    data, offsets = "", {}
    for words in (("car", "auto"), ("car", "rail_car", "railcar")):
        offset = offsets[words] = len(data)
        members = " ".join(f"{word} 0" for word in words)
        data += f"{offset:08d} 06 n {len(words):02x} {members} 000 | a thing  \n"
    (folder / "data.noun").write_text(data)
    index = {"auto": [0], "car": list(offsets.values()), "railcar": [max(offsets.values())]}
    lines = [
        f"{lemma} n {len(at)} 0 {len(at)} 0 {' '.join(f'{o:08d}' for o in at)}  \n"
        for lemma, at in index.items()
    ]
    (folder / "index.noun").write_text("".join(lines))


def test_nltk(tmp_path, monkeypatch):
    nltk = pytest.importorskip("nltk")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    with pytest.raises(ConfigError, match="python -m nltk.downloader wordnet"):
        open_thesaurus("nltk")
    princeton(tmp_path / "corpora" / "wordnet")
    found = NltkThesaurus()
    assert found.senses("car", "n") == [["car", "auto"], ["car", "rail_car", "railcar"]]
    assert list(found.synonyms("cars")) == [("auto",), ("railcar",)]
    assert list(found.synonyms("auto")) == [("car",)]
    assert list(found.synonyms("plane")) == []
    for file in found._wordnet._data_file_map.values():  # which nltk keeps open
        file.close()


@pytest.mark.shared
def test_the_real_one(shared):
    wordnet = WordNetFolder(shared / "data" / "wordnet")
    assert next(wordnet.synonyms("password")) == ("countersign", "parole", "watchword", "word")
    assert next(wordnet.synonyms("passwords")) == next(wordnet.synonyms("password"))
    assert next(wordnet.synonyms("physicians")) == ("MD", "doc", "doctor", "medico")
