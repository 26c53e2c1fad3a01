"""The checks for third parties: what is right passes, what is wrong is refused by the rule that it breaks."""

import numpy as np
import pytest
import torch

from counterpoint.encode import Head, Linear, Mean
from counterpoint.encode.choice import Choice
from counterpoint.errors import ConfigError
from counterpoint.index.codec import CODECS, Codec, Integral
from counterpoint.learn import Contrastive, Loss, MarginMSE
from counterpoint.part import Part
from counterpoint.score import Dot, MaxSim, Scorer
from counterpoint.testing import (
    check_codec,
    check_head,
    check_loss,
    check_part,
    check_scorer,
    check_transform,
)
from counterpoint.transform import FittedTransform, Normalise, Transform, Whitening
from counterpoint.types import Explanation, Span
from counterpoint.vectors import Vectors

REAL = MaxSim("words")


class Wrong(Scorer):
    """MaxSim with one fault."""

    def __init__(self, fault: str = "none"):
        super().__init__()
        self.fault = fault

    def forward(self, q, d):
        if self.fault == "padding":
            d = {"words": d["words"].with_values(d["words"].values.nan_to_num(9.0))}
            d = {"words": type(d["words"])(d["words"].values, torch.ones_like(d["words"].mask))}
        scores = REAL(q, d)
        if self.fault == "order":
            rows = zip(d["words"].values, d["words"].mask, strict=True)
            last = [own[mask][-1].sum() if mask.any() else torch.tensor(0.0) for own, mask in rows]
            scores = scores + torch.stack(last)
        if self.fault == "pairs":
            scores = scores - scores.mean()
        if self.fault == "empty":
            scores = scores + 1
        return scores.detach() if self.fault == "gradients" else scores

    def explain(self, q, d):
        score = self(q, d).item()
        leaves = [Explanation("half", score / 2)] if self.fault == "leaves" else []
        return Explanation("all", score, tuple(leaves))


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("padding", "ignores_padding"),
        ("order", "ignores_the_order_of_rows"),
        ("pairs", "scores_a_batch_as_its_pairs"),
        ("empty", "scores_empty_texts_zero"),
        ("gradients", "has_gradients"),
        ("leaves", "explains_by_leaves_that_sum"),
    ],
)
def test_a_wrong_scorer_is_refused(fault, rule):
    with pytest.raises(AssertionError, match=f"Wrong breaks the rule '{rule}'"):
        check_scorer(lambda: Wrong(fault))


def test_right_ones_pass():
    check_scorer(Wrong)
    check_scorer(lambda: Dot("cls") + 0.3 * MaxSim("words", exact=True))
    check_loss(MarginMSE)
    check_loss(lambda: Contrastive(temperature=0.5))
    check_part(Normalise)
    check_part(Whitening, {"dim": 4, "rank": 2})
    check_part(Mean, {"in_dim": 5, "projection": Linear(3)})


class WrongLoss(Loss):
    """Minus the mean score, with one fault."""

    def __init__(self, fault: str = "none", name: str | None = None):
        super().__init__(name)
        self.fault = fault

    def forward(self, step):
        if self.fault == "number":
            return 1.0
        if self.fault == "infinite":
            return step.scores.exp().exp().sum()
        if self.fault == "order":
            return (step.scores * torch.arange(step.scores.shape[1])).mean()
        if self.fault == "candidates":
            return step.scores.mean()
        if self.fault == "own":
            return step.scores.gather(1, step.targets.own[:, :1]).mean() / step.targets.own.shape[1]
        words = step.d["words"].values.mean() if self.fault == "padding" else 0
        return words - step.scores.gather(1, step.targets.own[:, :1]).mean()


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("infinite", "is_a_finite_scalar"),
        ("order", "ignores_the_order_of_documents"),
        ("padding", "ignores_padding"),
        ("own", "ignores_own_documents_that_are_not_there"),
        ("candidates", "ignores_padded_documents"),
    ],
)
def test_a_wrong_loss_is_refused(fault, rule):
    with pytest.raises(AssertionError, match=f"WrongLoss breaks the rule '{rule}'"):
        check_loss(lambda: WrongLoss(fault))


class Changes(Part):
    """Stores another value than it was given."""

    def __init__(self, size: int = 2):
        super().__init__()
        self.size = size + 1


class Allocates(Part):
    """Makes its weights too early."""

    def __init__(self, size: int = 2):
        super().__init__()
        self.size = size
        self.weight_ = torch.nn.Parameter(torch.zeros(size))


class Forgets(Part):
    """Stores its argument under another name."""

    def __init__(self, size: int = 2):
        super().__init__()
        self.width = size


class Unmarked(Part):
    """Learns something whose name does not say so."""

    def __init__(self, size: int = 2):
        super().__init__()
        self.size = size

    def _allocate(self):
        self.weight = torch.nn.Parameter(torch.zeros(self.size))


def test_what_is_wrong_with_a_part_is_told():
    with pytest.raises(
        AssertionError, match=r"Forgets breaks the rule 'stores_its_arguments'.*no self\.size"
    ):
        check_part(Forgets)
    with pytest.raises(AssertionError, match="Allocates .*it makes weight_; make these in _allocate"):
        check_part(Allocates)
    with pytest.raises(AssertionError, match="'marks_what_it_learns': .* call them weight_"):
        check_part(Unmarked)


def test_a_failure_of_any_kind_names_the_rule():
    with pytest.raises(
        AssertionError,
        match="Dot breaks the rule 'ignores_padding' at draw 0.*ConfigError: no vector set 'no'",
    ):
        check_scorer(lambda: Dot("no"))


@pytest.mark.parametrize("check, part", [(check_scorer, MaxSim("words")), (check_loss, MarginMSE())])
def test_a_finished_part_is_no_function_that_makes_one(check, part):
    with pytest.raises(
        TypeError, match="expected a function that makes one, found a finished Ma.*; write lambda: Ma"
    ):
        check(part)


@pytest.mark.parametrize("cls", [Changes, Allocates])
def test_a_wrong_part_is_refused(cls):
    with pytest.raises(AssertionError, match=f"{cls.__name__} breaks the rule 'stores_its_arguments'"):
        check_part(cls, {"size": 3})


class WrongCodec(Codec):
    """float32 with one fault."""

    def __init__(self, fault):
        self.fault = fault

    @property
    def name(self):
        return {"taken": "lengths", "file": "my/values"}.get(self.fault, "rows")

    def layout(self, dim):
        kinds = {"layout": np.float64, "infinity": np.int32}
        return {self.name: (kinds.get(self.fault, np.float32), (dim,))}

    def encode(self, values):
        if self.fault == "infinity":  # the bits of twice the numbers, which hide that some are infinite
            return {self.name: (values * np.float32(2)).view(np.int32)}
        largest = max(1.0, np.abs(values).max(initial=0)) if self.fault == "rows" else 1.0
        return {self.name: (values / largest).astype(np.float32)}

    def decode(self, arrays, dim):
        if self.fault == "infinity":
            return arrays[self.name].view(np.float32) / np.float32(2)
        factor = {"sign": -1, "half": 0.5}.get(self.fault, 1)
        return np.float32(factor) * np.asarray(arrays[self.name])


class WrongInt8(Integral):
    """int8 whose scales have another name or type, or more bits than kernels read."""

    def __init__(self, name="scales", kind=np.float16, bits=8):
        self.own, self.name, self.kind, self.bits, self.top = CODECS["int8"], name, kind, bits, 127

    def layout(self, dim):
        return {"values": (np.int8, (dim,)), self.name: (self.kind, ())}

    def encode(self, values):
        arrays = self.own.encode(values)
        return {"values": arrays["values"], self.name: arrays["scales"].astype(self.kind)}

    def decode(self, arrays, dim):
        return self.own.decode({"values": arrays["values"], "scales": arrays[self.name]}, dim)

    def asked(self, query, turn=None):
        return self.own.asked(query)

    def integers(self, values, dim):
        return self.own.integers(values, dim)


def test_what_compiled_kernels_cannot_read_is_refused():
    check_codec(WrongInt8)
    for wrong, words in (
        ({"name": "largest"}, r"arrays are {'values': 'int8', 'largest': 'float16'}; those of an `Integral`"),
        ({"kind": np.float32}, r"'scales': 'float32'}; those of an `Integral` are .*'scales': 'float16'}"),
        ({"bits": 6}, "`bits` is 6; kernels read 1, 2, 4 or 8"),
    ):
        with pytest.raises(AssertionError, match=f"'has_arrays_that_an_index_can_name'.*{words}"):
            check_codec(lambda wrong=wrong: WrongInt8(**wrong))


def test_a_name_of_another_file_is_refused():
    with pytest.raises(AssertionError, match="the name 'lengths' is taken, by a file with offsets"):
        check_codec(lambda: WrongCodec("taken"))
    with pytest.raises(AssertionError, match="'my/values' is in the name of a file; name it like a"):
        check_codec(lambda: WrongCodec("file"))


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("layout", "writes_what_its_layout_says"),
        ("rows", "codes_each_row_by_itself"),
        ("sign", "keeps_directions"),
        ("half", "codes_decoded_rows_as_they_were"),
        ("infinity", "never_keeps_infinity"),
    ],
)
def test_a_wrong_codec_is_refused(fault, rule):
    with pytest.raises(AssertionError, match=f"WrongCodec breaks the rule '{rule}'"):
        check_codec(lambda: WrongCodec(fault))
    check_codec(lambda: WrongCodec("none"))


def test_what_is_no_codec_function_and_no_class_is_refused():
    with pytest.raises(TypeError, match="found a finished WrongCodec; write lambda: MyCodec"):
        check_codec(WrongCodec("none"))
    for given in (Whitening(4), torch.nn.Linear):
        with pytest.raises(TypeError, match="expected a class derived from Part, found"):
            check_part(given)


class WrongHead(Head):
    """The first state of each text, with one fault."""

    pooled = True

    def __init__(self, fault: str = "none"):
        super().__init__()
        self.fault = fault

    def forward(self, hidden, tokens):
        values = hidden[:, :1]
        match self.fault:
            case "tensor":
                return values
            case "components":
                values = torch.cat([values, values], 2)
            case "rows":
                values = hidden[:, :2]
            case "infinite":
                values = values / 0
            case "padding":
                values = hidden.mean(1, keepdim=True)
            case "batch":
                values = values - values.mean(0)
            case "gradient":
                values = values.detach().requires_grad_()
        return Vectors(values, torch.ones(values.shape[:2], dtype=torch.bool))


class Unnumbered(Head):
    """Every state, without ids."""

    def forward(self, hidden, tokens):
        return Vectors(hidden, tokens.attention.bool())


class LongTokens(Choice):
    """Rows of tokens with at least two letters."""

    def ids(self, row, side):
        return row.ids[self.kept(row)]

    def spans(self, row, side, name_of):
        return [Span(row.text[start:end], start, end) for start, end in row.spans[self.kept(row)].tolist()]

    def kept(self, row):
        return row.spans[:, 1] - row.spans[:, 0] >= 2


class LongWords(Head):
    """The states of tokens with at least two letters."""

    def forward(self, hidden, tokens):
        return Vectors(hidden, tokens.spans[..., 1] - tokens.spans[..., 0] >= 2, tokens.ids)

    @property
    def choice(self):
        return LongTokens()


class Several(Head):
    """Every state, and the choice of one row."""

    def forward(self, hidden, tokens):
        return Vectors(hidden, tokens.attention.bool(), tokens.ids)


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: WrongHead("tensor"), "WrongHead returns a Tensor; return Vectors"),
        (
            lambda: WrongHead("components"),
            "vectors of 10 components, not 5; call `self.finish`, or define `dim`",
        ),
        (lambda: WrongHead("rows"), "is pooled, and has 2 rows per text"),
        (lambda: WrongHead("infinite"), "makes_the_vectors_that_it_declares.*a component is not finite"),
        (lambda: WrongHead("padding"), "reads_each_text_alone.*alone has other vectors"),
        (lambda: WrongHead("batch"), "reads_each_text_alone"),
        (lambda: WrongHead("gradient"), "no gradient reaches the backbone"),
        (Unnumbered, "several rows per text without ids; give each row its id, or set `pooled = True`"),
        (
            LongWords,
            r"made no rows of the documents \['a b', .*; check the head with arguments that keep words",
        ),
        (Several, r"rows of .*: \[4, 8, 2, 3\], by `choice` \[1, 1, 1, 1\]"),
    ],
)
def test_a_wrong_head_is_refused(declare, words):
    with pytest.raises(AssertionError, match=words):
        check_head(declare)
    check_head(WrongHead)


class Adds(FittedTransform):
    """Subtract a mean that keeps what an earlier fit found."""

    zeros = False

    def __init__(self, dim: int, anew: bool):
        super().__init__()
        self.dim, self.anew = dim, anew

    def _allocate(self):
        self.register_buffer("count_", torch.zeros((), dtype=torch.int64))
        self.register_buffer("sum_", torch.zeros(self.dim, dtype=torch.float64))

    def fit(self, rows):
        self.setup()
        if self.anew:
            self.count_.zero_()
            self.sum_.zero_()
        for batch in rows:
            self.count_ += len(batch)
            self.sum_ += batch.double().sum(0)
        return self

    def forward(self, vectors):
        self.check_fitted(vectors.values.shape[2])
        values = vectors.values - (self.sum_ / self.count_).to(vectors.values.dtype)
        moved = vectors.mask & (vectors.values.any(-1) | self.zeros)
        return vectors.with_values(values.masked_fill(~moved[:, :, None], 0))


class SignedRoot(Transform):
    """A transform without arguments, and so without a constructor."""

    def fit(self, rows):
        return self

    def forward(self, vectors):
        values = vectors.values.masked_fill(~vectors.mask[:, :, None], 0)
        return vectors.with_values(values.sign() * (values.abs() + 1).log())


def test_a_part_without_arguments_needs_no_constructor():
    check_part(SignedRoot)
    check_transform(SignedRoot)


class Careless(Adds):
    """It maps vectors before it is fitted."""

    def check_fitted(self, dim=None):
        self.setup()


class MovesZeros(Adds):
    """It subtracts the mean from zeros, too."""

    zeros = True


class Unfinished(Head):
    """It ignores `normalise`."""

    pooled = True

    def forward(self, hidden, tokens):
        return Vectors(hidden[:, :1], tokens.attention[:, :1].bool())


def test_what_is_forgotten_is_said():
    with pytest.raises(AssertionError, match="rows are not of length 1; call `self.finish`"):
        check_head(lambda: Unfinished(normalise=True))
    with pytest.raises(AssertionError, match=r"mapped vectors before `fit`; call `self.check_fitted"):
        check_transform(lambda: Careless(4, True))
    with pytest.raises(AssertionError, match=r"'keeps_zeros'.* a zero row becomes \[.*; write `.masked_fill"):
        check_transform(lambda: MovesZeros(4, True))
    with pytest.raises(AssertionError, match="the loss is a float, not a tensor"):
        check_loss(lambda: WrongLoss("number"))
    with pytest.raises(ConfigError, match=r'Text.needs is a text; write frozenset\({"negatives"}\)'):
        type("Text", (Loss,), {"needs": "negatives"})


def test_a_transform_that_keeps_an_earlier_fit_is_refused():
    check_transform(lambda: Adds(4, True))
    with pytest.raises(AssertionError, match="Adds breaks the rule 'forgets_an_earlier_fit'"):
        check_transform(lambda: Adds(4, False))


class Layered(Part):
    """It learns a layer whose name does not say so."""

    def __init__(self, name: str = "layer"):
        super().__init__()
        self.name = name

    def _allocate(self):
        self.add_module(self.name, torch.nn.Linear(2, 1))


def test_layers_are_learnt_state_too():
    check_part(Layered, {"name": "layer_"})
    with pytest.raises(AssertionError, match="'marks_what_it_learns': .* call them layer_"):
        check_part(Layered)
