"""One system's training, timed; started by train_speed.py in a process and an environment of its own.

    python -m benchmarks.speed.train_systems SYSTEM|peak TASK.json

TASK.json says what is trained on what (see `train_speed.task`). The clock runs from the end of the last
warm-up step to the end of the last step, so that it holds all that a step needs: drawing and tokenising the
batch, forward, backward, clipping and the optimiser. Prints one JSON object as its last line.
"""

import json
import string
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch


class Clock:
    """Told of the end of every step; also what our trainer reports to."""

    def __init__(self, warmup, steps):
        self.warmup, self.last = warmup, warmup + steps
        self.done = 0
        self.wall, self.cpu, self.losses = [], [], []

    def mark(self):
        self.done += 1
        if self.done in (self.warmup, self.last):  # only there: a GPU may lag within
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.wall.append(time.perf_counter())
            self.cpu.append(time.process_time())

    def stage(self, name, steps, done):
        pass

    def step(self, done, numbers):
        self.losses.append(numbers["loss"])
        self.mark()

    def busy(self, what, done):
        pass

    def note(self, text):
        print(text, file=sys.stderr)


def main() -> None:
    system, path = sys.argv[1:]
    task = json.loads(Path(path).read_text())
    torch.set_num_threads(task["threads"])
    if system == "peak":
        print("\n" + json.dumps({"peak": peak(task["device"], task["precision"])}))
        return
    clock = Clock(task["warmup"], task["steps"])
    with tempfile.TemporaryDirectory() as folder:
        loss = SYSTEMS[system][task["kind"]](task, clock, folder)
    assert clock.done == clock.last, f"{clock.done} steps were made, not {clock.last}"
    packages = (
        "counterpoint-ir" if system == "counterpoint" else system,
        "torch",
        "transformers",
        "sentence-transformers",
    )
    result = {
        "seconds": (clock.wall[1] - clock.wall[0]) / task["steps"],
        "cpu_seconds": (clock.cpu[1] - clock.cpu[0]) / task["steps"],
        "memory": peak_memory(),
        "loss": loss,
        "versions": {name: found for name in packages if (found := installed(name))},
    }
    print("\n" + json.dumps(result))


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def peak_memory() -> int:
    """Bytes: of the device where there is one, else this process's largest resident set (Linux)."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


# -- Counterpoint ------------------------------------------------------------------------------------------


def ours(task, clock, folder, encoder, objective, scorer):
    from dataclasses import dataclass

    from counterpoint.encode import DualEncoder
    from counterpoint.learn import Example, FromData, Job, Sampler, Train, TrainingSet, train
    from counterpoint.model import Model

    @dataclass(frozen=True)
    class InOrder(Sampler):
        def batches(self, data, size, epoch, seed):
            for start in range(0, len(data) - size + 1, size):
                yield list(range(start, start + size))

    rows = [[f"{at}.{place}" for place in range(len(row))] for at, row in enumerate(task["rows"])]
    texts = dict(zip(sum(rows, []), sum(task["rows"], []), strict=True))
    examples = [Example(query, (positive,), tuple(rest)) for query, positive, *rest in rows]
    data = TrainingSet.gather({row[0]: texts[row[0]] for row in rows}, texts, examples)
    stage = Train(
        objective,
        scorer,
        steps=task["warmup"] + task["steps"],
        batch=task["batch"],
        negatives=(FromData(count=1),) if len(rows[0]) > 2 else (),
        sampler=InOrder(),
        precision=task["precision"],
    )
    train(Job(Model(DualEncoder(encoder)), [stage], data, Path(folder)), reporter=clock)
    return sum(clock.losses) / len(clock.losses)


def counterpoint_dense(task, clock, folder):
    from counterpoint.encode import Encoder, Mean, TextInput, Transformer
    from counterpoint.learn import Contrastive
    from counterpoint.score import Dot

    inputs = TextInput(task["query_length"]), TextInput(task["document_length"])
    encoder = Encoder(Transformer(task["model"]), {"mean": Mean(normalise=True)}, *inputs)
    return ours(task, clock, folder, encoder, Contrastive(scale=20.0), Dot("mean"))


def counterpoint_colbert(task, clock, folder):
    from counterpoint.encode import PUNCTUATION, Encoder, Linear, TextInput, TokenVectors, Transformer
    from counterpoint.learn import Contrastive
    from counterpoint.score import MaxSim

    length = task["query_length"]
    inputs = TextInput(length, expand_to=length), TextInput(task["document_length"])
    head = TokenVectors(skip=PUNCTUATION, projection=Linear(task["dim"], bias=False), normalise=True)
    encoder = Encoder(Transformer(task["model"]), {"tokens": head}, *inputs)
    return ours(task, clock, folder, encoder, Contrastive(), MaxSim("tokens"))


# -- sentence-transformers and PyLate, whose trainers are transformers' ------------------------------------


def theirs(task, clock, folder, model, loss, trainer, arguments, **others):
    from datasets import Dataset
    from torch.utils.data import BatchSampler, SequentialSampler
    from transformers import TrainerCallback

    class Marks(TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            clock.mark()

    class InOrder(trainer):
        def get_batch_sampler(self, dataset, batch_size, drop_last, *_, **__):
            return BatchSampler(SequentialSampler(dataset), batch_size, drop_last)

    names = ("anchor", "positive", "negative")
    columns = zip(names, zip(*task["rows"], strict=True), strict=False)
    cpu = task["device"] == "cpu"
    steps = task["warmup"] + task["steps"]
    settings = arguments(
        folder,
        max_steps=steps,
        per_device_train_batch_size=task["batch"],
        learning_rate=2e-5,
        weight_decay=0.01,
        warmup_steps=-(-steps // 10),
        bf16=task["precision"] == "bf16",
        use_cpu=cpu,
        dataloader_pin_memory=not cpu,
        save_strategy="no",
        eval_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    data = Dataset.from_dict({name: list(column) for name, column in columns})
    made = InOrder(model=model, args=settings, train_dataset=data, loss=loss, callbacks=[Marks()], **others)
    return made.train().training_loss


def sentence_transformers_dense(task, clock, folder):
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    model = SentenceTransformer(task["model"], device=task["device"])
    model.max_seq_length = task["document_length"]  # queries are cut to theirs already
    loss = MultipleNegativesRankingLoss(model, scale=20.0)
    made = SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    return theirs(task, clock, folder, model, loss, *made)


def sentence_transformers_colbert(task, clock, folder):
    from sentence_transformers import (
        MultiVectorEncoder,
        MultiVectorEncoderTrainer,
        MultiVectorEncoderTrainingArguments,
    )
    from sentence_transformers.base.modules import Dense, Transformer
    from sentence_transformers.multi_vector_encoder.losses import MultiVectorMultipleNegativesRankingLoss
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from sentence_transformers.sentence_transformer.modules import Normalize

    expansion = {"strategy": "fixed", "attend": False, "length": task["query_length"]}
    length = task["document_length"]
    backbone = Transformer(task["model"], query_expansion=expansion, document_length=length)
    tokens = {"module_input_name": "token_embeddings"}
    width = backbone.get_embedding_dimension()
    head = Dense(width, task["dim"], bias=False, activation_function=torch.nn.Identity(), **tokens)
    mask = MultiVectorMask(skiplist_words=list(string.punctuation))
    model = MultiVectorEncoder(modules=[backbone, head, mask, Normalize(**tokens)], device=task["device"])
    loss = MultiVectorMultipleNegativesRankingLoss(model)
    made = MultiVectorEncoderTrainer, MultiVectorEncoderTrainingArguments
    return theirs(task, clock, folder, model, loss, *made)


def pylate_colbert(task, clock, folder):
    from pylate.losses import Contrastive
    from pylate.models import ColBERT
    from pylate.utils import ColBERTCollator
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

    model = ColBERT(
        task["model"],
        device=task["device"],
        embedding_size=task["dim"],
        query_length=task["query_length"],
        document_length=task["document_length"],
        query_prefix="",
        document_prefix="",
    )
    collator = ColBERTCollator(model.tokenize)
    made = SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    return theirs(task, clock, folder, model, Contrastive(model), *made, data_collator=collator)


# -- the hardware ------------------------------------------------------------------------------------------


def peak(device: str, precision: str) -> float:
    """FLOP/s of a large square product, the fastest of many."""
    size = 2048 if device == "cpu" else 8192
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    fastest = float("inf")
    for _ in range(20):
        started = time.perf_counter()
        a @ b
        if device != "cpu":
            torch.cuda.synchronize()
        fastest = min(fastest, time.perf_counter() - started)
    return 2 * size**3 / fastest


SYSTEMS = {
    "counterpoint": {"dense": counterpoint_dense, "colbert": counterpoint_colbert},
    "sentence-transformers": {"dense": sentence_transformers_dense, "colbert": sentence_transformers_colbert},
    "pylate": {"colbert": pylate_colbert},
}


if __name__ == "__main__":
    main()
