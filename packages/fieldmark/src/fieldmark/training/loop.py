"""The loop: epochs of steps, val after each epoch, a checkpoint to go on from, the best epoch kept."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.training.checkpoints import (
    check_place,
    fetch,
    load_best,
    load_last,
    place_of,
    save_best,
    save_last,
    send,
)
from fieldmark.training.draws import example_seeds
from fieldmark.training.logs import LOG_FILE, Log
from fieldmark.training.objectives import Objective, Prepared
from fieldmark.training.optimizers import AveragedWeights, Schedule
from fieldmark.training.recipe import Training
from fieldmark.training.sources import ProcessShare, Source, Transform, evaluation_batches, prepared, training_batches
from fieldmark.training.strategies import Processes, make_fabric, strategy_of
from fieldmark.training.validation import better
from fieldmark.work.progress import Tick, progress, say

Tensor = Any

# The loss is fetched from the device and written down after so many steps: fetching it makes the device wait.
STEPS_PER_LINE = 50
# What may change between a killed training and the one that goes on from it.
FREE_SETTINGS = ("workers", "checkpoint_minutes", "checkpoints", "trackers", "devices")
# What the first process reads of a checkpoint and hands out by itself.
HELD_BY_FIRST = ("weights", "optimizer", "average")
# An epoch that is smaller than a batch gets so many steps, if that leaves so many examples for each.
LEAST_STEPS, LEAST_BATCH = 4, 8


@dataclass(frozen=True)
class Trained:
    """What a training came to.

    Args:
        weights: The network's weights of the best epoch, on the CPU.
        best_epoch: Which epoch that was, counted from 1.
        epochs: What was measured after each epoch.
        rank: Which process this is; all of them have the same weights.
        remarks: What was done otherwise than the recipe says, one sentence each.
    """

    weights: dict[str, Tensor]
    best_epoch: int
    epochs: list[dict[str, Any]]
    rank: int
    remarks: tuple[str, ...] = ()


def train(
    network: Any,
    train: Source,
    val: Source | None,
    transform: Transform,
    how: Training,
    *,
    objective: Objective,
    scratch: Path,
    per_group: int = 0,
    fabric: Any = None,
) -> Trained:
    """Trains a network, or goes on with a training that was interrupted.

    Args:
        network: A torch module from inputs to logits.
        train: The examples to learn from.
        val: Those to choose the best epoch by; None where nothing is to be chosen.
        transform: Turns raw batches into inputs on the device.
        how: The recipe.
        objective: What is to be learned, and what is measured on val.
        scratch: The folder for checkpoints and the log. The same call with the same folder goes on.
        per_group: How many examples of each group are shown in an epoch, 0 for all.
        fabric: Where to train, if the caller has set that up.

    Raises:
        MisuseError: When a batch cannot be shared out evenly, the folder holds another training, the recipe does not go
            with the objective, or it wants to choose something by a val that is not there.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    fabric = fabric or make_fabric(how)
    examples = len(objective.order(train.labels, train.groups, how, per_group, 0))
    batch = batch_for(examples, how.batch, how.accumulate * fabric.world_size)
    remarks: tuple[str, ...] = ()
    if batch != how.batch:
        remarks = (f"batch={how.batch} is more than an epoch has examples ({examples}): trained with batch={batch}.",)
        how = replace(how, batch=batch)
    trainer = _Trainer(fabric, network, train, val, transform, how, objective, scratch, per_group)
    trainer.run()
    trainer.log.close()
    weights, lines = trainer.processes.of_first(lambda: (load_best(trainer.place), trainer.log.read()))
    return Trained(weights, trainer.best_epoch, [line for line in lines if "val" in line], fabric.global_rank, remarks)


def batch_for(examples: int, asked: int, parts: int = 1) -> int:
    """The batch that is asked for, or a smaller one where an epoch has fewer examples.

    It is halved until an epoch has four steps or eight examples are left in each, and further where even that is too
    many; what is shared out evenly among parts stays so.

    >>> batch_for(1000, 64), batch_for(60, 64), batch_for(12, 64), batch_for(5, 64), batch_for(20, 64, parts=4)
    (64, 8, 8, 4, 8)
    """
    if asked <= examples:
        return asked
    batch = asked
    while batch % (2 * parts) == 0 and (batch > examples or (batch > LEAST_BATCH and batch * LEAST_STEPS > examples)):
        batch //= 2
    return batch


class _Trainer:
    """One training in progress. Its state is what a checkpoint holds."""

    def __init__(
        self,
        fabric: Any,
        network: Any,
        train: Source,
        val: Source | None,
        transform: Transform,
        how: Training,
        objective: Objective,
        scratch: Path,
        per_group: int,
    ) -> None:
        self.fabric, self.network, self.how, self.scratch = fabric, network, how, scratch
        self.train, self.val, self.transform, self.per_group = train, val, transform, per_group
        self.objective = objective
        self.share = ProcessShare(fabric.global_rank, fabric.world_size)
        self.processes, self.place = Processes(fabric), place_of(scratch, how.checkpoints)
        self.strategy = strategy_of(fabric, self.processes, how)
        self.model, self.optimizer = self.strategy.set_up(network, how)
        self.loss = objective.make_loss(train.labels, how, fabric.device)
        self.average = AveragedWeights(network, how.ema) if how.ema else None
        self.steps_per_epoch = len(self._order(0)) // how.batch
        self.schedule = Schedule(how, self.steps_per_epoch)
        self.epoch, self.step_in_epoch = 0, 0
        self.loss_so_far = torch.zeros((), dtype=torch.float64)
        self.interrupted = False
        self.best: float | None = None
        self.best_epoch = 0
        self._check()
        self._restore()
        self.log = Log(scratch, how) if fabric.global_rank == 0 else _Silent(scratch, how)
        self.log.keep_until(self.step)

    @property
    def step(self) -> int:
        """Steps taken since the beginning."""
        return self.epoch * self.steps_per_epoch + self.step_in_epoch

    def run(self) -> None:
        """Trains to the end."""
        total = self.how.epochs * self.steps_per_epoch
        batches = self._batches()
        shown = progress("training", total - self.step) if self.fabric.global_rank == 0 else nullcontext(_no_tick)
        with self._interruptible(), shown as tick:
            while self.epoch < self.how.epochs:
                started, first = time.perf_counter(), self.step_in_epoch
                loss = self._train_epoch(batches, tick)
                seconds = time.perf_counter() - started
                rate = (self.steps_per_epoch - first) * self.how.batch / max(seconds, 1e-9)
                self._end_epoch(loss, rate)

    def _batches(self) -> Iterator[Prepared]:
        """What is still to be learned from, on the device."""
        batches = training_batches(
            self.train,
            self._order,
            range(self.epoch, self.how.epochs),
            objective=self.objective,
            seed=self.how.seed,
            batch=self.how.batch,
            accumulate=self.how.accumulate,
            share=self.share,
            first_step=self.step_in_epoch,
            workers=self.how.workers,
            device=self.fabric.device,
        )
        return prepared(batches, self.transform, self.fabric.device)

    def _train_epoch(self, batches: Iterator[Prepared], tick: Tick) -> float:
        self.model.train()
        self.loss_so_far = self.loss_so_far.to(self.fabric.device)
        saved, loss = time.monotonic(), self.processes.mean(self.loss_so_far) / max(1, self.step_in_epoch)
        while self.step_in_epoch < self.steps_per_epoch:
            rate = self.schedule.set(self.optimizer, self.step)
            self.loss_so_far += self._step(batches)
            self.step_in_epoch += 1
            tick(1)
            if self.step_in_epoch % STEPS_PER_LINE == 0 or self.step_in_epoch == self.steps_per_epoch:
                loss = self.processes.mean(self.loss_so_far) / self.step_in_epoch
                self.log.write(self.step, epoch=self.epoch + 1, loss=loss, lr=rate)
            due = time.monotonic() - saved > 60 * self.how.checkpoint_minutes
            if self.processes.agreed(self.interrupted or due):
                self._save()
                saved = time.monotonic()
                if self.processes.agreed(self.interrupted):
                    raise KeyboardInterrupt
        return loss

    def _step(self, batches: Iterator[Prepared]) -> Tensor:
        """One step of the optimizer; returns this process's mean loss, still on the device."""
        seed = example_seeds(self.how.seed, self.epoch, np.array([self.step_in_epoch]))[0] % np.uint64(2**62)
        torch.manual_seed(int(seed) + self.share.rank)  # dropout, too, is a function of the step
        total = torch.zeros((), device=self.fabric.device)
        for part in range(self.how.accumulate):
            batch = next(batches)
            last = part == self.how.accumulate - 1
            with self.fabric.no_backward_sync(self.model, enabled=not last):
                loss = self.objective.batch_loss(self.model, batch, self.loss, self.how) / self.how.accumulate
                self.fabric.backward(loss)
            total += loss.detach()
        if self.how.clip_norm:
            self.fabric.clip_gradients(self.model, self.optimizer, max_norm=self.how.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self.average is not None:
            self.average.update()
        return total

    def _end_epoch(self, loss: float, rate: float) -> None:
        with self._evaluated_weights():
            self._share_buffers()
            values = self._validate(self.val) if self.val is not None else {}
            value = values.get("loss" if self.how.best_by == "last" else self.how.best_by)
            improved = better(value, self.best, self.how.best_by)
            if improved:
                self.best, self.best_epoch = value, self.epoch + 1
                weights = self.strategy.weights(self.network)
                if self.processes.is_first:
                    save_best(self.place, weights)
        if values:
            self.schedule.after_epoch(values["loss"])
        self.epoch, self.step_in_epoch = self.epoch + 1, 0
        self.loss_so_far = torch.zeros_like(self.loss_so_far)
        self.log.write(self.step, epoch=self.epoch, train_loss=loss, val=values, examples_per_s=round(rate, 1))
        if self.fabric.global_rank == 0:
            names = dict.fromkeys(("loss", self.objective.headline, self.how.best_by))
            shown = "; val " + ", ".join(f"{name} {values[name]:.3f}" for name in names if name in values)
            best = " (best)" if improved else ""
            say(f"epoch {self.epoch}/{self.how.epochs}: loss {loss:.3f}{shown + best if values else ''}")
        self._save()

    def _validate(self, val: Source) -> dict[str, float]:
        """The metrics on val, shared out among the processes and brought together again."""
        most = -(-len(val) // self.share.processes)
        rows = self.share.rank + self.share.processes * np.arange(most)
        # All look at equally many, as a network that is shared out needs; what one looks at twice is dropped.
        with self.strategy.evaluating():
            outcomes = self._outcomes(val, np.minimum(rows, len(val) - 1))
        gathered = self.processes.each(outcomes)  # processes x rows x columns
        outcomes = gathered.transpose(0, 1).flatten(0, 1)[: len(val)]
        return self.objective.metrics(outcomes.cpu().numpy(), val.labels, val.groups)

    def _outcomes(self, val: Source, rows: NDArray[np.int64]) -> Tensor:
        self.network.eval()
        how = self.how
        batches = evaluation_batches(
            val, rows, batch=how.batch, workers=how.workers, device=self.fabric.device, objective=self.objective
        )
        outcomes = []
        for batch in prepared(batches, self.transform, self.fabric.device):
            with self.fabric.autocast():  # the network itself: compiling it a second time for val would not pay
                logits = self.network(batch.inputs)
            outcomes.append(self.objective.outcomes(logits, batch.targets, self.loss))
        return torch.cat(outcomes)

    def _evaluated_weights(self) -> AbstractContextManager[None]:
        """Puts the averaged weights in place for a while, where there are any."""
        return nullcontext() if self.average is None else self.average.in_place()

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Lets Ctrl-C end the training between two steps, where its state is whole; a second one ends it at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: Any) -> None:
            self.interrupted = True
            signal.signal(signal.SIGINT, before)

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _share_buffers(self) -> None:
        """Gives all processes the running statistics of the first, so that they evaluate one and the same network."""
        if self.share.processes > 1:
            for buffer in self.network.buffers():
                torch.distributed.broadcast(buffer, 0)

    def _order(self, epoch: int) -> NDArray[np.int64]:
        return self.objective.order(self.train.labels, self.train.groups, self.how, self.per_group, epoch)

    def _check(self) -> None:
        parts = self.share.processes * self.how.accumulate
        if self.how.batch % parts:
            raise MisuseError(f"batch={self.how.batch} cannot be shared out among {parts} parts evenly.")
        if self.steps_per_epoch == 0:
            raise MisuseError(f"batch={self.how.batch} is more than an epoch has examples ({len(self._order(0))}).")
        if self.val is None and (self.how.best_by != "last" or self.how.schedule == "plateau"):
            raise MisuseError("Training without val needs best_by=last and a schedule other than plateau.")
        self.objective.check(self.how, self.how.batch // parts)

    def _fingerprint(self) -> dict[str, Any]:
        """What a training that goes on must have in common with the one that was interrupted."""
        settings = {name: value for name, value in asdict(self.how).items() if name not in FREE_SETTINGS}
        parts = {"train": self.train} | ({} if self.val is None else {"val": self.val})
        return settings | self.objective.fingerprint({name: part.labels for name, part in parts.items()})

    def _save(self) -> None:
        """Writes a checkpoint; all processes put it together, and the first one writes."""
        state: dict[str, Any] = {
            "fingerprint": self._fingerprint(),
            "epoch": self.epoch,
            "step_in_epoch": self.step_in_epoch,
            "losses": self.processes.each(self.loss_so_far).cpu(),
            "best": self.best,
            "best_epoch": self.best_epoch,
            "schedule": self.schedule.state(),
            "loss": self.loss.state_dict() if isinstance(self.loss, torch.nn.Module) else None,
            "updates": self.average.updates if self.average else None,
            "weights": self.strategy.weights(self.network),
            "optimizer": self.strategy.optimizer_state(self.network, self.optimizer),
        }
        if self.average is not None:
            with self._evaluated_weights():
                # A copy: the tensors of the network are its own again in a moment.
                own = self.strategy.weights(self.network).items()
                state["average"] = {name: tensor.detach().clone() for name, tensor in own}
        if self.processes.is_first:
            save_last(self.place, state)
            send(self.place, self.log.path)

    def _restore(self) -> None:
        whole: dict[str, Any] = {name: {} for name in HELD_BY_FIRST}

        def load() -> dict[str, Any] | None:
            state = load_last(self.place, self._fingerprint())
            if state is None:
                check_place(self.place, LOG_FILE)
            else:
                fetch(self.place, self.scratch / LOG_FILE)
                whole.update({name: state.pop(name, {}) for name in HELD_BY_FIRST})
            return state

        state = self.processes.of_first(load)
        if state is None:
            return
        if self.average is not None:
            self.strategy.load(self.network, whole["average"])
            self.average.restart(state["updates"])
        self.strategy.load(self.network, whole["weights"])
        self.strategy.load_optimizer(self.network, self.optimizer, whole["optimizer"])
        self.schedule = Schedule(self.how, self.steps_per_epoch, **state["schedule"])
        if isinstance(self.loss, torch.nn.Module):
            self.loss.load_state_dict(state["loss"])
        self.epoch, self.step_in_epoch = state["epoch"], state["step_in_epoch"]
        losses = state["losses"]  # of as many processes as there were
        self.loss_so_far = losses[self.share.rank] if len(losses) == self.share.processes else losses.mean()
        self.best, self.best_epoch = state["best"], state["best_epoch"]


class _Silent(Log):
    """The log of a process that is not the first: it reads, and writes nothing."""

    def __init__(self, folder: Path, how: Training) -> None:
        super().__init__(folder, replace(how, trackers=""))

    def keep_until(self, step: int) -> None:
        pass

    def write(self, step: int, **values: Any) -> None:
        pass


def _no_tick(done: int) -> None:
    pass
