"""How the processes of a training share its network: a copy for each (DDP), or a part of it for each (FSDP).

Both learn the same: a step is taken on the mean gradient of all processes. What is saved is the whole state, put
together in the first process, so that a training may go on with another number of processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeVar

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies import ModelParallelStrategy
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.fsdp import fully_shard

from fieldmark.errors import FieldmarkError, MisuseError
from fieldmark.training.optimizers import make_optimizer
from fieldmark.training.recipe import Training

Tensor = Any
R = TypeVar("R")

# Modules in a row (the blocks of a network) with at least so many weights are shared out one by one, so that a process
# holds one of them whole at a time.
SHARDED_WEIGHTS = 100_000


def make_fabric(how: Training) -> Any:
    """Sets up the devices a recipe asks for: one, several, or the processes that torchrun has started.

    Raises:
        MisuseError: When there is nobody to share a network with.
    """
    gpu = torch.cuda.is_available()
    precision = how.precision
    if precision == "auto":
        precision = "bf16-mixed" if gpu and torch.cuda.is_bf16_supported() else "32-true"
    if "LOCAL_WORLD_SIZE" in os.environ:  # torchrun
        devices = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // devices
    else:
        devices, nodes = how.devices, 1
    asked: dict[str, Any] = {}
    if how.strategy == "fsdp":
        if devices * nodes == 1:
            raise MisuseError(
                "strategy=fsdp shares a network among processes: start some with torchrun, or set devices."
            )
        if precision == "16-mixed":
            raise MisuseError("strategy=fsdp goes with precision=32-true or bf16-mixed.")
        asked["strategy"] = ModelParallelStrategy(_sharded, data_parallel_size=devices * nodes, tensor_parallel_size=1)
    where = "cuda" if gpu else "cpu"
    fabric = Fabric(accelerator=where, devices=devices, num_nodes=nodes, precision=precision, **asked)
    fabric.launch()
    return fabric


class Processes:
    """What the processes of a training tell each other besides gradients."""

    def __init__(self, fabric: Any) -> None:
        self.fabric, self.number, self.is_first = fabric, fabric.world_size, fabric.global_rank == 0
        # Words go beside the GPUs, which would have to stop for them.
        self._words = torch.distributed.new_group(backend="gloo") if self.number > 1 else None

    def agreed(self, wanted: bool) -> bool:
        """Whether the first process wants something that all must do together."""
        if self._words is None:
            return wanted
        word = torch.tensor(int(wanted))
        torch.distributed.broadcast(word, 0, group=self._words)
        return bool(word)

    def of_first(self, work: Callable[[], R]) -> R:
        """What some work gives in the first process, which alone does it; where that refuses, all do."""
        done: list[Any] = [None, None]
        if self.is_first:
            try:
                done[0] = work()
            except FieldmarkError as error:
                done[1] = error
        if self._words is not None:
            torch.distributed.broadcast_object_list(done, 0, group=self._words)
        if done[1] is not None:
            raise done[1]
        result: R = done[0]
        return result

    def each(self, value: Tensor) -> Tensor:
        """The values of all processes, one after the other; they have the same shape."""
        if self.number == 1:
            return value[None]
        parts = [torch.empty_like(value) for _ in range(self.number)]
        torch.distributed.all_gather(parts, value.contiguous())
        return torch.stack(parts)

    def mean(self, value: Tensor) -> float:
        """The mean over all processes."""
        return float(self.fabric.all_reduce(value.clone(), reduce_op="mean"))


class Strategy(Protocol):
    """What differs between the two ways. All processes call all of it, at the same point of the training."""

    def set_up(self, network: Any, how: Training) -> tuple[Any, Any]:
        """The network and its optimizer, as the loop calls them."""
        ...

    def weights(self, network: Any) -> dict[str, Tensor]:
        """The whole weights, in the first process."""
        ...

    def optimizer_state(self, network: Any, optimizer: Any) -> dict[str, Any]:
        """The whole state of the optimizer, in the first process."""
        ...

    def load(self, network: Any, weights: Mapping[str, Tensor]) -> None:
        """Gives all processes the weights that the first one has."""
        ...

    def load_optimizer(self, network: Any, optimizer: Any, state: Mapping[str, Any]) -> None:
        """Gives all processes the state of the optimizer that the first one has."""
        ...

    def evaluating(self) -> AbstractContextManager[None]:
        """Around looks at val."""
        ...


def strategy_of(fabric: Any, processes: Processes, how: Training) -> Strategy:
    """The strategy of a recipe on the processes of a fabric."""
    return ShardedNetwork(fabric) if how.strategy == "fsdp" else CopiedNetwork(fabric, processes)


class CopiedNetwork:
    """Every process has the whole network."""

    def __init__(self, fabric: Any, processes: Processes) -> None:
        self.fabric, self.processes = fabric, processes

    def set_up(self, network: Any, how: Training) -> tuple[Any, Any]:
        network.to(memory_format=torch.channels_last)
        optimizer = make_optimizer(network, how)
        model, wrapped = self.fabric.setup(torch.compile(network) if how.compile else network, optimizer)
        return model, wrapped

    def weights(self, network: Any) -> dict[str, Tensor]:
        return dict(network.state_dict())

    def optimizer_state(self, network: Any, optimizer: Any) -> dict[str, Any]:
        return dict(optimizer.state_dict())

    def load(self, network: Any, weights: Mapping[str, Tensor]) -> None:
        network.load_state_dict(self.processes.of_first(lambda: weights))

    def load_optimizer(self, network: Any, optimizer: Any, state: Mapping[str, Any]) -> None:
        optimizer.load_state_dict(self.processes.of_first(lambda: state))

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        with torch.inference_mode():
            yield


class ShardedNetwork:
    """Every process has a part of each tensor, of its gradient and of its optimizer's state (FSDP2)."""

    def __init__(self, fabric: Any) -> None:
        self.fabric = fabric

    def set_up(self, network: Any, how: Training) -> tuple[Any, Any]:
        network.to(memory_format=torch.contiguous_format)
        begin = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
        model = self.fabric.setup_module(torch.compile(network) if how.compile else network)
        self.load(network, begin)
        return model, self.fabric.setup_optimizers(make_optimizer(network, how))

    def weights(self, network: Any) -> dict[str, Tensor]:
        return dict(states.get_model_state_dict(network, options=_WHOLE))

    def optimizer_state(self, network: Any, optimizer: Any) -> dict[str, Any]:
        return dict(states.get_optimizer_state_dict(network, _unwrapped(optimizer), options=_WHOLE))

    def load(self, network: Any, weights: Mapping[str, Tensor]) -> None:
        states.set_model_state_dict(network, self._if_first(weights), options=_FROM_FIRST)

    def load_optimizer(self, network: Any, optimizer: Any, state: Mapping[str, Any]) -> None:
        states.set_optimizer_state_dict(network, _unwrapped(optimizer), self._if_first(state), options=_FROM_FIRST)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        with torch.no_grad():  # what inference mode gathers could not be trained on again
            yield

    def _if_first(self, state: Mapping[str, Any]) -> dict[str, Any]:
        return dict(state) if self.fabric.global_rank == 0 else {}


_WHOLE = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
_FROM_FIRST = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)


def _unwrapped(optimizer: Any) -> Any:
    return getattr(optimizer, "optimizer", optimizer)


def _sharded(network: Any, mesh: Any) -> Any:
    """The network with its blocks, and then what is left of it, shared out among the processes of a mesh."""
    own = mesh["data_parallel"]
    in_rows = (torch.nn.ModuleList, torch.nn.Sequential)
    blocks = [block for row in network.modules() if isinstance(row, in_rows) for block in row.children()]
    for block in reversed(blocks):  # what lies deepest comes first
        large = sum(weight.numel() for weight in block.parameters()) >= SHARDED_WEIGHTS
        if large and not isinstance(block, torch.nn.ModuleList):  # lists are never called
            fully_shard(block, mesh=own)
    return fully_shard(network, mesh=own)
