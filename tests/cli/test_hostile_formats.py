"""Checkpoints in the formats of other libraries with settings that are missing or of another type."""

import json
import shutil

import pytest
from tests.cli.hostile import survives
from tests.cli.test_hostile_models import ANY_JSON, HUGE, ODD, corpus  # noqa: F401  (a fixture)
from tests.encode.tiny import save_tiny_bert, tiny_tokenizer

formats = pytest.importorskip("tests.encode.formats")


def save_judge(folder):
    """A cross-encoder as transformers saves it."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    save_tiny_bert(folder)
    config = BertConfig.from_pretrained(folder, num_labels=1)
    torch.manual_seed(2)
    BertForSequenceClassification(config).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """A checkpoint of each format, by name."""
    folder = tmp_path_factory.mktemp("hostile-formats")
    formats.save_pylate(folder / "pylate")
    formats.save_stanford(folder / "stanford")
    formats.save_colberter(folder / "colberter")
    formats.save_dense(folder / "dense")
    formats.save_multi(folder / "multi", expansion={"strategy": "fixed", "length": 12, "attend": False})
    save_judge(folder / "judge")
    return {
        name: folder / name / "model" if name in ("dense", "multi") else folder / name
        for name in ("pylate", "stanford", "colberter", "dense", "multi", "judge")
    }


def load(name, model, corpus, tmp_path, capsys):  # noqa: F811
    out = tmp_path / "out"
    if name == "judge":
        line = ("rerank", corpus, "--run", corpus / "run.trec", "--model", model, "-o", out)
    else:
        line = ("index", corpus, "-o", out, "--model", model)
    code, _, err = survives(capsys, *line, outputs=[out], names=[model])
    shutil.rmtree(out, ignore_errors=True) if out.is_dir() else out.unlink(missing_ok=True)
    return code, err


def test_they_are_sound_before(others, corpus, tmp_path, capsys):  # noqa: F811
    for name, folder in others.items():
        code, err = load(name, folder, corpus, tmp_path, capsys)
        assert code == 0, err


CASES = [
    ("pylate", "modules.json", lambda found: found[0].pop("type")),
    ("pylate", "modules.json", lambda found: found[1].update(path=3)),
    ("pylate", "modules.json", lambda found: found[1].update(path="a\0b")),
    ("pylate", "modules.json", lambda found: found[1].update(path="x" * 5000)),
    ("pylate", "config_sentence_transformers.json", lambda found: found.update(query_length="x")),
    ("pylate", "config_sentence_transformers.json", lambda found: found.update(query_length=HUGE)),
    ("pylate", "config_sentence_transformers.json", lambda found: found.update(query_length=-1)),
    ("pylate", "config_sentence_transformers.json", lambda found: found.update(skiplist_words=3)),
    ("pylate", "config_sentence_transformers.json", lambda found: found.update(query_prefix=[1])),
    ("pylate", "config_sentence_transformers.json", lambda found: found.update(prompts=[1])),
    ("pylate", "1_Dense/config.json", lambda found: found.pop("out_features")),
    ("pylate", "1_Dense/config.json", lambda found: found.update(out_features=HUGE)),
    ("pylate", "1_Dense/config.json", lambda found: found.update(out_features="8")),
    ("pylate", "1_Dense/config.json", lambda found: found.update(activation_function=[1])),
    ("stanford", "artifact.metadata", lambda found: found.update(dim="8")),
    ("stanford", "artifact.metadata", lambda found: found.update(query_maxlen="x")),
    ("stanford", "artifact.metadata", lambda found: found.update(doc_maxlen=HUGE)),
    ("stanford", "artifact.metadata", lambda found: found.update(query_token_id=3)),
    ("colberter", "config.json", lambda found: found.update(bert_model=3)),
    ("colberter", "config.json", lambda found: found.update(compression_dim="x")),
    ("dense", "1_Pooling/config.json", lambda found: found.update(pooling_mode=3)),
    ("dense", "1_Pooling/config.json", lambda found: found.update(embedding_dimension=[16])),
    ("multi", "sentence_bert_config.json", lambda found: found.update(query_expansion="x")),
    ("multi", "sentence_bert_config.json", lambda found: found.update(query_expansion={"strategy": "fixed"})),
    ("judge", "config.json", lambda found: found.update(model_type=["bert"])),
    ("judge", "config.json", lambda found: found.update(hidden_size=HUGE)),
    ("judge", "config.json", lambda found: found.update(hidden_act="evil")),
    ("judge", "tokenizer_config.json", lambda found: found.update(model_max_length="x")),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_setting(number, others, corpus, tmp_path, capsys):  # noqa: F811
    name, file, change = CASES[number]
    copy = shutil.copytree(others[name], tmp_path / "model")
    found = json.loads((copy / file).read_text())
    change(found)
    (copy / file).write_text(json.dumps(found))
    code, err = load(name, copy, corpus, tmp_path, capsys)
    assert code == 2, err


def places(data):
    """Paths to every value of plain JSON, two levels deep."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield (key,)
        if isinstance(value, dict | list):
            yield from ((key, inside) for inside in (value if isinstance(value, dict) else range(len(value))))


BACKBONE = {"config.json", "tokenizer_config.json", "tokenizer.json"}
"""Files of transformers, which one reader reads in all formats but `judge`."""


@pytest.mark.long
@pytest.mark.parametrize("name", ["pylate", "stanford", "colberter", "dense", "multi", "judge"])
def test_every_setting(name, others, corpus, tmp_path, capsys):  # noqa: F811
    copy = shutil.copytree(others[name], tmp_path / "model")
    files = [*copy.rglob("*.json"), *copy.glob("artifact.metadata")]
    if name in ("stanford", "dense", "multi"):
        files = [path for path in files if path.parent != copy or path.name not in BACKBONE]
    for path in files:
        content = path.read_text()
        if path.name != "tokenizer.json":
            for place in places(json.loads(content)):
                for value in ODD.values():
                    changed = json.loads(content)
                    holder = changed[place[0]] if len(place) == 2 else changed
                    holder[place[-1]] = value
                    path.write_text(json.dumps(changed))
                    load(name, copy, corpus, tmp_path, capsys)
        path.write_text(content)
    for path in files:
        for damage in ANY_JSON.values():
            content = path.read_bytes()
            damage(path)
            load(name, copy, corpus, tmp_path, capsys)
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
            path.write_bytes(content)
