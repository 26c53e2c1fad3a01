"""`Loop`: runs a `Train` stage. Batches, gradient steps, evaluations and checkpoints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, final

import torch

from counterpoint.errors import ConfigError, DataError
from counterpoint.learn.batch_stream import BatchStream
from counterpoint.learn.batches import Batch
from counterpoint.learn.checkpoint import Checkpoint
from counterpoint.learn.development import DevelopmentSet
from counterpoint.learn.learners import learner_of
from counterpoint.learn.loss import Objective
from counterpoint.learn.losses.contrastive import CachedContrastive, Contrastive
from counterpoint.learn.optimiser import (
    choose_parameters,
    make_optimiser,
    rate_at,
    restore_state,
    state_of,
    take_turns,
)
from counterpoint.learn.seeds import seed_of
from counterpoint.learn.stages import Train
from counterpoint.learn.step import Step
from counterpoint.learn.stop import Situation
from counterpoint.learn.training_run import TrainingRun
from counterpoint.learn.watch import Observation, Watch

__all__ = ["Loop"]

LOG = 10  # steps between log lines


@final
class Loop:
    """One training stage of a run."""

    def __init__(self, run: TrainingRun, number: int, stage: Train):
        self.run, self.number, self.stage = run, number, stage
        self.job, self.processes = run.job, run.processes
        self.learner = learner_of(run, stage)
        objective = stage.objective
        self.objective = objective if isinstance(objective, Objective) else Objective([objective])
        self.parameters = self.learner.parameters()
        self.chosen = choose_parameters(self.parameters, stage.learn, stage.freeze)
        self.optimiser = make_optimiser(self.chosen, stage)
        self.watch = Watch(stage.watch)
        self.stream = BatchStream(run, stage)
        self.best: tuple[float, dict[str, torch.Tensor]] | None = None
        self.history: list[dict[str, float]] = []
        self.measures: dict[str, float] = {}
        self._sums: dict[str, float] = {}
        self._summed = 0

    # -- the stage -------------------------------------------------------------------------------------

    def go(self, checkpoint: Checkpoint | None) -> None:
        """Train from the beginning, or from a checkpoint of this stage."""
        with self.learner.remembering():
            self._go(checkpoint)

    def _go(self, checkpoint: Checkpoint | None) -> None:
        if checkpoint is not None and not checkpoint.state:
            checkpoint = None  # written between two stages, so this stage has not begun
        done = 0 if checkpoint is None else checkpoint.step
        self.run.reporter.stage(self.stage.name, self.stream.total, done)
        self.learner.start(checkpoint)
        reason = self._look(0) if checkpoint is None else self._restore(checkpoint)
        if reason is not None:
            return self._end(done, reason)
        for step, batches in self.stream.steps(done):
            take_turns(self.chosen, self.stage.alternate, step)
            self.learner.train_mode()
            self._step(step, batches)
            if self._evaluates(step + 1) or self._asks(step + 1):
                reason = self._look(step + 1)
            elif self.stage.checkpoint_every and (step + 1) % self.stage.checkpoint_every == 0:
                self._save(step + 1)
            if reason is not None:
                return self._end(step + 1, reason)
        self._end(self.stream.total, None)

    def _step(self, step: int, batches: Sequence[Batch]) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = group["factor"] * rate_at(step, self.stream.total, self.stage)
        self.optimiser.zero_grad(set_to_none=True)
        terms: dict[str, float] = {}
        seen = []
        for part, batch in enumerate(batches):
            found, made = self._backward(step, part, batch)
            seen = [made]  # the watch checks the last batch
            for name, value in found.items():
                terms[name] = terms.get(name, 0.0) + value / len(batches)
        norm = self._clipped_norm()
        if not all(map(math.isfinite, [norm, *terms.values()])):
            raise DataError(
                f"{self.stage.name}, step {step}: the loss or its gradient is not finite ({terms}); lower "
                "the learning rate, lengthen the warm-up, or train in fp32. The last checkpoint is kept"
            )
        self.optimiser.step()
        self.learner.after_step()
        looked = self._watched(seen[-1], step + 1, terms)
        for warning in looked.warnings:
            self._warn(step + 1, warning)
        self._log(step, {"loss": sum(terms.values()), **terms, "gradient_norm": norm}, looked.numbers)

    def _backward(self, step: int, part: int, batch: Batch) -> tuple[dict[str, float], Step]:
        """Add the gradients of one batch. Returns the loss terms and the step that the loss saw."""
        seed = seed_of(self.job.seed, self.stage.name, "dropout", step, part)
        made = self.learner.make(batch, seed, step * self.stage.accumulate + part)
        terms = self.objective.terms(made.step)
        loss = sum(terms.values(), start=made.step.scores.new_zeros(())) / self.stage.accumulate
        if not loss.requires_grad:
            raise ConfigError(
                f"{self.stage.name}: the loss has no gradient; compute it from the scores or vectors of the "
                "step, without item() and detach()"
            )
        loss.backward()
        made.backward()
        return {name: float(value.detach()) for name, value in terms.items()}, made.step

    def _clipped_norm(self) -> float:
        """Sum the gradients over processes and clip them. Returns the norm before clipping."""
        alike = ("scorer.", "objective.")  # every process computes them over the whole batch
        # Only parameters whose turn it is: momentum and decay would move the others even with gradient 0.
        self.processes.sum_gradients(
            p for name, p in self.chosen.items() if p.requires_grad and not name.startswith(alike)
        )
        limit = math.inf if self.stage.clip is None else self.stage.clip
        return float(torch.nn.utils.clip_grad_norm_(self.chosen.values(), limit))

    # -- evaluation ------------------------------------------------------------------------------------

    def _asks(self, step: int) -> bool:
        """Whether the stop rule looks after this step: every `rule.every` steps, or at each evaluation."""
        rule = self.stage.stop
        if rule is None:
            return False
        return step in (0, self.stream.total) or not step % (rule.every or self._evaluation_period())

    def _evaluates(self, step: int) -> bool:
        rule = self.stage.stop
        wanted = rule is not None and rule.by_measures and self._asks(step)
        return wanted or step in (0, self.stream.total) or not step % self._evaluation_period()

    def _evaluation_period(self) -> int:
        return self.stage.evaluate_every or self.stream.epoch_steps

    def _look(self, step: int) -> str | None:
        """Evaluate and apply the stop rule where they are due, then write a checkpoint."""
        numbers: dict[str, float] = {}
        if self.job.development is not None and self._evaluates(step):
            numbers |= self._evaluate(self.job.development)
        reason = None
        if self.stage.stop is not None and self._asks(step):
            self.job.model.eval()
            situation = Situation(self.job.model, self.job.development, self.measures)
            seen = self.processes.first_says(self.stage.stop.look(situation))
            self.history.append(seen)
            numbers |= seen
            reason = self.stage.stop.decide(self.history)
        if numbers:
            self._write(step, numbers)
        self._save(step)
        return reason

    def _evaluate(self, development: DevelopmentSet) -> dict[str, float]:
        """Evaluate on the first process, and keep the weights if they are the best so far."""
        self.run.scorer_to_search(self.number + 1)
        if self.processes.rank == 0:
            self.measures = self.learner.evaluate(development)
        self.measures = self.processes.first_says(self.measures)
        value = self.measures[self.job.measures[0]]
        if self.best is None or value > self.best[0]:
            weights = {name: p.detach().cpu().clone() for name, p in self._learnt().items()}
            self.best = (value, weights)
        return self.measures

    def _end(self, step: int, reason: str | None) -> None:
        """End the stage, and restore the best weights if `keep` says so."""
        if reason is not None:
            self._say_why(step, reason)
        if self.stage.keep == "best" and self.best is not None:
            with torch.no_grad():
                for name, weights in self.best[1].items():
                    self._learnt()[name].copy_(weights)
        copied, said = self.run.scorer_to_search(self.number + 1) or (
            False,
            self.run.searched_otherwise(self.stage),
        )
        if said and copied:
            self.run.reporter.note(f"{self.stage.name}: {said}")
        elif said:
            self._warn(step, f"{self.stage.name}: {said}")
        for parameter in self.parameters.values():
            parameter.requires_grad_(True)
        self.job.model.eval()

    def _learnt(self) -> dict[str, torch.Tensor]:
        """Everything that a step changes: the chosen parameters, and the statistics of scorer and losses."""
        return {**self.chosen, **self.learner.statistics()}

    def _say_why(self, step: int, reason: str) -> None:
        """Report why the stage ended early. A failure is a warning, because later stages still run."""
        said = f"{self.stage.name} ended at step {step}: {reason}"
        self._write(step, {"stopped": reason})
        if self.stage.stop is None or not self.stage.stop.is_failure(reason):
            return self.run.reporter.note(said)
        later = [stage.name for stage in self.job.stages[self.number + 1 :]]
        goes_on = f". The recipe continues with {', '.join(later)} from there" if later else ""
        self._warn(step, said + goes_on)

    def _warn(self, step: int, text: str) -> None:
        self.run.reporter.warn(text)
        self._write(step, {"warning": text})

    def _watched(self, step: Step, number: int, terms: Mapping[str, float]) -> Observation:
        """Look at the vectors, if any, and at a softmax term, whose value for equal scores is known."""
        if not step.d:
            return Observation()
        losses = list(self.objective.losses)
        softmax = len(losses) == 1 and isinstance(losses[0], Contrastive | CachedContrastive)
        return self.watch.see(step, number, terms[self.objective.names[0]] if softmax else None)

    # -- log and checkpoints ---------------------------------------------------------------------------

    def _log(self, step: int, numbers: Mapping[str, float], watched: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._summed += 1
        if watched or (step + 1) % LOG == 0 or step + 1 == self.stream.total:
            means = {name: value / self._summed for name, value in self._sums.items()}
            self._write(step + 1, {**means, "lr": rate_at(step, self.stream.total, self.stage), **watched})
            self._sums, self._summed = {}, 0
        self.run.reporter.step(step + 1, numbers)

    def _write(self, step: int, numbers: Mapping[str, Any]) -> None:
        if self.processes.rank == 0:
            self.run.metrics.write(self.number, self.stage.name, step, numbers)
        scalars = {f"{self.stage.name}/{k}": v for k, v in numbers.items() if isinstance(v, float)}
        self.run.accelerator.log(scalars, step=step)

    def _save(self, step: int) -> None:
        watched, watch_state = self.watch.state()
        state: dict[str, object] = {
            "history": self.history,
            "measures": self.measures,
            "best": None if self.best is None else self.best[0],
            "prepared": self.stream.prepared,
            "watch": watch_state,
            "sums": self._sums,
            "summed": self._summed,
        }
        learnt, learner_state = self.learner.state()
        state |= learner_state
        tensors = {"optimiser": state_of(self.optimiser, self.chosen), "watch": watched, **learnt}
        if self.best is not None:
            tensors["best"] = self.best[1]
        self.run.save(self.number, step, state, tensors)

    def _restore(self, checkpoint: Checkpoint) -> str | None:
        """Continue from a checkpoint. Returns the reason if the stage had ended there."""
        state: Any = checkpoint.state
        self.history, self.measures = state["history"], state["measures"]
        self.stream.prepared = state["prepared"]
        self._sums, self._summed = state["sums"], state["summed"]
        self.watch.restore(checkpoint.tensors["watch"], state["watch"])
        restore_state(self.optimiser, self.chosen, checkpoint.tensors["optimiser"])
        if state["best"] is not None:
            self.best = (state["best"], dict(checkpoint.tensors["best"]))
        return None if self.stage.stop is None else self.stage.stop.decide(self.history)
