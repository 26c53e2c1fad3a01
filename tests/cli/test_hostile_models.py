"""Models that are broken or made to break something: refused, naming the file, before memory is taken."""

import json
import os
import shutil
import struct
import tomllib

import pytest
import tomli_w
import torch
from safetensors.torch import load_file, save_file
from tests.cli.hostile import survives

from counterpoint.encode import (
    DualEncoder,
    Encoder,
    Gate,
    InteractiveEncoder,
    Linear,
    Mean,
    Routed,
    Router,
    Stack,
    TokenVectors,
    Transformer,
)
from counterpoint.model import Model
from counterpoint.transform import Glow, Nice, Normalise, Whitening

HUGE = 10**12


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile-corpus")
    (folder / "corpus.jsonl").write_text('{"_id": "a", "title": "", "text": "the cat sat"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "cat"}\n')
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    (folder / "run.trec").write_text("q Q0 a 1 1.0 t\n")
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory, tiny_bert_folder):
    """A saved model with every kind of argument."""
    folder = tmp_path_factory.mktemp("hostile-model") / "model"
    heads = {
        "mean": Mean(projection=Stack([Linear(8, activation="tanh"), Linear(6)]), normalise=True),
        "tokens": TokenVectors(skip=(",", "."), projection=Linear(4)),
        "routed": Routed(Router("softmax", "new"), projection=Linear(4)),
    }
    encoder = DualEncoder(
        Encoder(Transformer(str(tiny_bert_folder), layers=1), heads), gates={"tokens": Gate()}
    )
    maps = [
        Normalise(),
        Whitening(6, rank=6),
        Nice(6, couplings=1, layers=1, width=4),
        Glow(6, levels=[1], width=4),
    ]
    declared = Model(encoder, {"mean": maps}, search={"weights": {"mean": 1.0, "tokens": 0.5}})
    declared.setup()
    for step in maps[1:]:
        step.count_.fill_(1)
    declared.save(folder)
    return folder


@pytest.fixture(scope="module")
def judge(tmp_path_factory, tiny_bert_folder):
    folder = tmp_path_factory.mktemp("hostile-judge") / "judge"
    InteractiveEncoder(Transformer(str(tiny_bert_folder)), Linear(1)).save(folder)
    return folder


def test_they_are_sound_before(saved, judge, corpus, tiny_bert_folder, tmp_path, capsys):
    for number, model in enumerate((saved, tiny_bert_folder)):
        index = tmp_path / str(number)
        assert survives(capsys, "index", corpus, "-o", index, "--model", model)[0] == 0
    rerank = ("rerank", corpus, "--run", corpus / "run.trec", "-o", tmp_path / "r", "--model", judge)
    assert survives(capsys, *rerank)[0] == 0


def refused(capsys, corpus, folder, output, *names):
    """Nothing is built of the model, and the message names it."""
    code, _, err = survives(
        capsys, "index", corpus, "-o", output, "--model", folder, outputs=[output], names=[folder, *names]
    )
    assert code == 2, err


ODD = {
    "text": "8",
    "true": True,
    "0": 0,
    "-1": -1,
    "1e12": 1e12,
    "10 to the 12": HUGE,
    "2 to the 63 - 1": 2**63 - 1,
    "inf": float("inf"),
    "nan": float("nan"),
    "list": [1],
    "table": {"a": 1},
    "nothing": {"none": True},
    "another part": {"part": "counterpoint.encode:Unit"},
    "no part": {"part": "os:system"},
}
HEADS = ("encoder", "query", "heads")
LINEAR = (*HEADS, "tokens", "projection")
MAPS = ("transforms", "mean")

DECLARED = {
    "dim is text": ((*LINEAR, "dim"), "8"),
    "dim is true": ((*LINEAR, "dim"), True),
    "dim is 0": ((*LINEAR, "dim"), 0),
    "dim is -1": ((*LINEAR, "dim"), -1),
    "dim is inf": ((*LINEAR, "dim"), float("inf")),
    "dim is nan": ((*LINEAR, "dim"), float("nan")),
    "dim is 1e12": ((*LINEAR, "dim"), 1e12),
    "dim is 10 to the 12": ((*LINEAR, "dim"), HUGE),
    "dim is 2 to the 63 - 1": ((*LINEAR, "dim"), 2**63 - 1),
    "dim of a map is 10 to the 12": ((*MAPS, 1, "dim"), HUGE),
    "dim of a map is text": ((*MAPS, 1, "dim"), "8"),
    "rank is 10 to the 12": ((*MAPS, 1, "rank"), HUGE),
    "couplings are 10 to the 12": ((*MAPS, 2, "couplings"), HUGE),
    "layers are 10 to the 12": ((*MAPS, 2, "layers"), HUGE),
    "width is 10 to the 12": ((*MAPS, 2, "width"), HUGE),
    "levels are 10 to the 12": ((*MAPS, 3, "levels"), [HUGE]),
    "a level too many": ((*MAPS, 3, "levels"), [1] * 62),
    "activation": ((*HEADS, "mean", "projection", "layers", 0, "activation"), "os.system"),
    "normalise is text": ((*HEADS, "mean", "normalise"), "no"),
    "threshold is nan": (("encoder", "gates", "tokens", "threshold"), float("nan")),
    "threshold is inf": (("encoder", "gates", "tokens", "threshold"), float("inf")),
    "codec": (("codec",), "pickle"),
    "analyzer": (("analyzer",), "evil"),
    "no part of ours": (("part",), "os:system"),
    "no class": (("part",), "counterpoint.model"),
    "a function": (("part",), "counterpoint.cli.main:main"),
    "the module that runs": (("part",), "counterpoint.__main__:main"),
    "an abstract part": ((*HEADS, "mean", "part"), "counterpoint.encode:Head"),
    "a part of another kind": ((*LINEAR,), {"part": "counterpoint.transform:Normalise"}),
    "a stage": ((), {"part": "counterpoint.learn:Build"}),
    "a part that is a number": (("encoder",), 3),
    "heads are a list": (HEADS, [1, 2]),
    "no heads": (HEADS, {}),
    "a head with a dot": ((*HEADS, "a.b"), {"part": "counterpoint.encode:Cls"}),
    "a head without a name": ((*HEADS, ""), {"part": "counterpoint.encode:Cls"}),
    "a head called as a method": ((*HEADS, "keys"), {"part": "counterpoint.encode:Cls"}),
    "source is a number": (("encoder", "query", "backbone", "source"), 7),
    "maps of another set": (("transforms",), {"nowhere": [{"part": "counterpoint.transform:Normalise"}]}),
    "search is a list": (("search",), [1]),
    "weights are text": (("search", "weights"), "x"),
    "a weight is text": (("search", "weights", "mean"), "x"),
    "a weight is nan": (("search", "weights", "mean"), float("nan")),
    "a weight is inf": (("search", "weights", "mean"), float("inf")),
    "a weight is true": (("search", "weights", "mean"), True),
    "candidates are text": (("search", "candidates"), "many"),
    "candidates are -1": (("search", "candidates"), -1),
    "scale": (("search", "scale"), "evil"),
    "exact is text": (("search", "exact"), "tokens"),
    "exact is a number": (("search", "exact"), [1]),
    "feedback is nan": (("search", "feedback"), float("nan")),
    "an unknown setting": (("search", "evil"), 1),
}


def replaced(data, path, value):
    """A copy of plain data with another value at a place, which may be new."""
    if not path:
        return value
    copied = dict(data) if isinstance(data, dict) else list(data)
    inside = copied.get(path[0], {}) if isinstance(copied, dict) else copied[path[0]]
    copied[path[0]] = replaced(inside, path[1:], value)
    return copied


def declared(saved, target, path, value):
    """A copy of a saved model with another value at a place of its declaration."""
    document = tomllib.loads((saved / "part.toml").read_text())
    copy = target if target.exists() else shutil.copytree(saved, target)
    unsigned(copy, replaced(document["part"], path, value))
    return copy


def unsigned(folder, part=None):
    """Take the checksums away, as folders of earlier versions have none: whoever edits can sign, too."""
    document = tomllib.loads((folder / "part.toml").read_text())
    kept = {name: document[name] for name in ("format", "fingerprint", "same", "part")}
    (folder / "part.toml").write_text(tomli_w.dumps(kept if part is None else {**kept, "part": part}))


@pytest.mark.parametrize("name", DECLARED)
def test_a_declaration(name, saved, corpus, tmp_path, capsys):
    copy = declared(saved, tmp_path / "model", *DECLARED[name])
    refused(capsys, corpus, copy, tmp_path / "index")


def places(data, path=()):
    """Every place of plain data, containers included."""
    yield path
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


@pytest.mark.long
@pytest.mark.parametrize("name", ODD)
def test_every_place_of_a_declaration(name, saved, corpus, tmp_path, capsys):
    document = tomllib.loads((saved / "part.toml").read_text())
    for number, path in enumerate(places(document["part"])):
        copy = declared(saved, tmp_path / "model", path, ODD[name])
        index = tmp_path / f"index{number}"
        survives(capsys, "index", corpus, "-o", index, "--model", copy, outputs=[index])


TOML = {
    "empty": "",
    "garbage": "}{",
    "not UTF-8": b"\xff\xfe",
    "NUL": "\0",
    "another format": "format = 2",
    "format is text": "format = '1'",
    "no part": "format = 1\n",
    "part is a list": "format = 1\npart = [1]",
    "part is empty": "format = 1\n[part]",
    "5,000 digits": "format = 1\npart = " + "9" * 5000,
    "nested lists": "format = 1\npart = " + "[" * 100_000,
    "nested tables": "format = 1\npart = " + "{a=" * 5000 + "1" + "}" * 5000,
    "dotted tables": "format = 1\n[part" + ".a" * 5000 + "]",
    "tables in part": "format = 1\n[part" + ".a" * 150 + "]\npart = 'counterpoint.model:Model'",
    "a date": "format = 1\npart = 1979-05-27T07:32:00Z",
    "twice": "format = 1\nformat = 1",
}


@pytest.mark.parametrize("name", TOML)
def test_part_toml(name, saved, corpus, tmp_path, capsys):
    copy = shutil.copytree(saved, tmp_path / "model")
    text = TOML[name]
    (copy / "part.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(capsys, corpus, copy, tmp_path / "index", "part.toml")


# -- the files of a saved model and of a foreign one ---------------------------------------------------


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def set_json(**changes):
    return lambda path: edit(path, **changes)


def text(content):
    return lambda path: path.write_bytes(content if isinstance(content, bytes) else content.encode())


def missing(path):
    path.unlink()


def folder(path):
    path.unlink()
    path.mkdir()


def broken_link(path):
    path.unlink()
    path.symlink_to("nowhere")


def loop(path):
    path.unlink()
    path.symlink_to(path.name)


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def cut(path):
    path.write_bytes(path.read_bytes()[:-7])


def header(content, length=None):
    """A safetensors file of this header."""

    def write(path):
        raw = content.encode()
        path.write_bytes(struct.pack("<Q", len(raw) if length is None else length) + raw + bytes(64))

    return write


def tensors(change):
    def write(path):
        found = load_file(path)
        change(found)
        save_file(found, path)

    return write


def first_as(dtype):
    def change(found):
        name = next(name for name in found if name.endswith("weight"))
        found[name] = found[name].to(dtype)

    return tensors(change)


ANY_JSON = {
    "missing": missing,
    "a folder": folder,
    "a broken link": broken_link,
    "a link to itself": loop,
    "empty": text(""),
    "garbage": text("}{"),
    "a list": text("[]"),
    "a number": text("1"),
    "null": text("null"),
    "not UTF-8": text(b"\xff\xfe{}"),
    "a BOM": text(b"\xef\xbb\xbf{}"),
    "5,000 digits": text('{"hidden_size": ' + "9" * 5000 + "}"),
    "nested lists": text("[" * 100_000),
    "nested tables": text('{"a":' * 100_000),
    "no keys": text("{}"),
}
ANY_WEIGHTS = {
    "missing": missing,
    "a folder": folder,
    "a link to itself": loop,
    "empty": text(""),
    "cut": cut,
    "garbage": text("garbage"),
    "a pickle": text(b"\x80\x04cos\nsystem\n"),
    "a header of 2 to the 63": header("{}", 2**63),
    "a header beyond the file": header("{}", 1000),
    "a header that is no JSON": header("}{"),
    "a header nested deeply": header("[" * 100_000),
    "no tensors": header("{}"),
    "offsets beyond the file": header('{"a": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]}}'),
    "offsets that overlap": header(
        '{"a": {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]},'
        ' "b": {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}}'
    ),
    "a shape of 10 to the 12": header(
        '{"a": {"dtype": "F32", "shape": [1000000000000], "data_offsets": [0, 64]}}'
    ),
    "a negative shape": header('{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 64]}}'),
    "an unknown type": header('{"a": {"dtype": "F33", "shape": [16], "data_offsets": [0, 64]}}'),
    "whole numbers": first_as(torch.int64),
    "complex numbers": first_as(torch.complex64),
    "one weight": tensors(lambda found: [found.pop(name) for name in list(found)[1:]]),
}
CONFIG = {
    "hidden_size 0": set_json(hidden_size=0),
    "hidden_size -1": set_json(hidden_size=-1),
    "hidden_size text": set_json(hidden_size="x"),
    "hidden_size null": set_json(hidden_size=None),
    "hidden_size float": set_json(hidden_size=16.5),
    "hidden_size list": set_json(hidden_size=[16]),
    "hidden_size 10 to the 12": set_json(hidden_size=HUGE),
    "hidden_size 10 to the 30": set_json(hidden_size=10**30),
    "heads that do not divide": set_json(num_attention_heads=3),
    "heads 0": set_json(num_attention_heads=0),
    "heads 10 to the 12": set_json(num_attention_heads=HUGE),
    "layers 10 to the 12": set_json(num_hidden_layers=HUGE),
    "layers 9,999": set_json(num_hidden_layers=9_999),
    "layers -1": set_json(num_hidden_layers=-1),
    "layers text": set_json(num_hidden_layers="x"),
    "vocabulary 10 to the 12": set_json(vocab_size=HUGE),
    "vocabulary 0": set_json(vocab_size=0),
    "vocabulary 3": set_json(vocab_size=3),
    "positions 10 to the 12": set_json(max_position_embeddings=HUGE),
    "positions 0": set_json(max_position_embeddings=0),
    "intermediate 10 to the 12": set_json(intermediate_size=HUGE),
    "types 10 to the 12": set_json(type_vocab_size=HUGE),
    "padding beyond": set_json(pad_token_id=HUGE),
    "padding text": set_json(pad_token_id="x"),
    "activation": set_json(hidden_act="evil"),
    "activation list": set_json(hidden_act=["gelu"]),
    "epsilon text": set_json(layer_norm_eps="x"),
    "epsilon null": set_json(layer_norm_eps=None),
    "range text": set_json(initializer_range="x"),
    "dropout 2": set_json(attention_probs_dropout_prob=2),
    "labels 10 to the 12": set_json(num_labels=HUGE),
    "labels text": set_json(id2label="x", label2id=3),
    "model_type unknown": set_json(model_type="evil"),
    "model_type list": set_json(model_type=["bert"]),
    "model_type null": set_json(model_type=None),
    "model_type t5": set_json(model_type="t5"),
    "model_type gpt2": set_json(model_type="gpt2"),
    "model_type vit": set_json(model_type="vit"),
    "model_type clip": set_json(model_type="clip"),
    "model_type modernbert": set_json(model_type="modernbert"),
    "code of its own": set_json(auto_map={"AutoModel": "evil.Model"}, model_type="evil"),
    "architectures text": set_json(architectures="BertModel"),
    "architectures number": set_json(architectures=3),
    "architectures numbers": set_json(architectures=[3]),
    "quantisation": set_json(quantization_config={"quant_method": "evil"}),
    "attention": set_json(attn_implementation="evil", _attn_implementation="evil"),
    "a key that is a method": set_json(to_dict=1, get_input_embeddings=2),
}
TOKENIZER = {
    "no model": set_json(model=None),
    "unknown model": set_json(model={"type": "Evil"}),
    "ids beyond the table": set_json(model={"type": "WordPiece", "unk_token": "[UNK]",
        "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
        "vocab": {"[UNK]": 5_000_000, "[CLS]": 1, "[SEP]": 2, "[PAD]": 0, "a": 4_000_000}}),
    "negative ids": set_json(model={"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": -1}}),
    "empty vocabulary": set_json(model={"type": "WordPiece", "unk_token": "[UNK]",
        "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {}}),
    "a pattern that never ends": set_json(
        normalizer={"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": "b"}
    ),
    "a pattern that is none": set_json(
        normalizer={"type": "Replace", "pattern": {"Regex": "("}, "content": "b"}
    ),
    "no template": set_json(post_processor=None),
    "a template of unknown tokens": set_json(post_processor={"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[EVIL]", "type_id": 0}}], "pair": [], "special_tokens": {}}),
    "added tokens": set_json(added_tokens=[{"id": 10**9, "content": "a", "special": True,
        "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}]),
}  # fmt: skip
TOKENIZER_CONFIG = {
    "class": set_json(tokenizer_class="EvilTokenizer"),
    "class number": set_json(tokenizer_class=3),
    "length text": set_json(model_max_length="x"),
    "length -1": set_json(model_max_length=-1),
    "length 0": set_json(model_max_length=0),
    "length 1": set_json(model_max_length=1),
    "length nan": set_json(model_max_length=float("nan")),
    "length 1e30": set_json(model_max_length=1e30),
    "padding number": set_json(pad_token=3),
    "padding unknown": set_json(pad_token="[EVIL]"),
    "mask unknown": set_json(mask_token="[EVIL]"),
    "code of its own": set_json(auto_map={"AutoTokenizer": ["evil.T", None]}, tokenizer_class="T"),
}
FOREIGN = {
    f"{file}: {name}": (file, damage)
    for file, damages in {
        "config.json": {**ANY_JSON, **CONFIG},
        "tokenizer.json": {**ANY_JSON, **TOKENIZER},
        "tokenizer_config.json": {**ANY_JSON, **TOKENIZER_CONFIG},
        "model.safetensors": ANY_WEIGHTS,
    }.items()
    for name, damage in damages.items()
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_checkpoint(name, tiny_bert_folder, corpus, tmp_path, capsys):
    file, damage = FOREIGN[name]
    copy = shutil.copytree(tiny_bert_folder, tmp_path / "model")
    damage(copy / file)
    index = tmp_path / "index"
    survives(capsys, "index", corpus, "-o", index, "--model", copy, outputs=[index], names=[copy])


SHARDS = {
    "a list": [],
    "a number": 3,
    "null": None,
    "of numbers": {"a": 3},
    "outside": {"a": "../../model.safetensors"},
    "absolute": {"a": "/etc/passwd"},
    "missing": {"a": "model-00001-of-00002.safetensors"},
    "a folder": {"a": "."},
    "with a NUL": {"a": "a\0b"},
    "empty": {},
    "a pickle": {"a": "pytorch_model.bin"},
    "a long name": {"a": "x" * 5000},
}


@pytest.mark.parametrize("name", SHARDS)
def test_a_weight_map(name, tiny_bert_folder, corpus, tmp_path, capsys):
    copy = shutil.copytree(tiny_bert_folder, tmp_path / "model")
    (copy / "model.safetensors").unlink()
    (copy / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n")
    (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": SHARDS[name]}))
    refused(capsys, corpus, copy, tmp_path / "index")


OWN = {
    f"{file}: {name}": (file, damage)
    for file, damages in {
        "config.json": {**ANY_JSON, **CONFIG},
        "tokenizer.json": {**ANY_JSON, **TOKENIZER},
        "special_tokens_map.json": {
            **ANY_JSON,
            "numbers": set_json(pad_token=3, mask_token=4),
            "unknown": set_json(pad_token="[EVIL]"),
        },
    }.items()
    for name, damage in damages.items()
}


A_SAMPLE = [name for at, name in enumerate(OWN) if at % 5 == 0]  # the readers are those of the foreign ones


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in A_SAMPLE else pytest.mark.long) for name in OWN]
)
def test_an_asset_of_a_saved_model(name, saved, corpus, tmp_path, capsys):
    file, damage = OWN[name]
    copy = shutil.copytree(saved, tmp_path / "model")
    (path,) = copy.glob(f"assets/*/{file}")
    damage(path)
    unsigned(copy)
    index = tmp_path / "index"
    survives(capsys, "index", corpus, "-o", index, "--model", copy, outputs=[index], names=[copy])


@pytest.mark.parametrize("name", ANY_WEIGHTS)
def test_the_weights_of_a_saved_model(name, saved, corpus, tmp_path, capsys):
    copy = shutil.copytree(saved, tmp_path / "model")
    ANY_WEIGHTS[name](copy / "weights.safetensors")
    refused(capsys, corpus, copy, tmp_path / "index")
