"""Data-parallel training in several processes: `torchrun --nproc-per-node 2 -m cuolr train …`.

Every process has the same networks and the whole log, and takes its part of every batch. Gradients are summed, so that
all processes take the same step: that of one process with the whole batch. The first process validates, writes files
and prints messages. With one process, these functions have no effect.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist

from cuolr.errors import InputError

T = TypeVar("T")
# Timeout for other processes: the first one may be busy validating. A process that dies is detected immediately.
PATIENCE = timedelta(days=1)


@contextmanager
def joined() -> Iterator[None]:
    """Join the processes that torchrun started; without torchrun, this has no effect."""
    if not dist.is_torchelastic_launched():
        yield
        return
    # The first step of an optimiser imports it. If it is imported after the group is created, it keeps a reference to
    # the group, whose threads then outlive the interpreter, and the process may end with a signal.
    import torch._dynamo  # noqa: F401

    dist.init_process_group("gloo", timeout=PATIENCE)
    try:
        yield
    except InputError:
        if os.environ["LOCAL_RANK"] != "0":
            sys.exit(2)  # all have the same problems; one process per machine reports them
        raise
    finally:
        dist.destroy_process_group()


def processes() -> int:
    """The number of processes."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def is_first() -> bool:
    """Whether this process validates, writes files and prints messages."""
    return processes() == 1 or dist.get_rank() == 0


def part_of(rows: int) -> slice:
    """The part of a batch that this process takes; parts differ by at most one row."""
    if rows < processes():
        raise InputError(f"batch_size: expected at least {processes()}, one list for each process, found {rows}")
    rank = 0 if is_first() else dist.get_rank()
    return slice(rank * rows // processes(), (rank + 1) * rows // processes())


def total(values: Tensor) -> Tensor:
    """The sum over processes, without gradient."""
    values = values.detach()
    if processes() > 1:
        values = values.clone()
        dist.all_reduce(values)
    return values


def share(weight: Tensor) -> Tensor:
    """This process's share of the total weight; equal shares if the total is 0."""
    whole = total(weight)
    return torch.where(whole > 0, weight / whole.clamp(min=torch.finfo(whole.dtype).tiny), 1 / processes())


def add_gradients(parameters: Iterable[Tensor]) -> None:
    """Replace each gradient by its sum over processes."""
    if processes() == 1:
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    sums = total(torch.cat([gradient.flatten() for gradient in gradients]))
    sizes = [gradient.numel() for gradient in gradients]
    for gradient, values in zip(gradients, torch.split_with_sizes(sums, sizes), strict=True):
        gradient.copy_(values.view_as(gradient))


def in_any(value: bool) -> bool:
    """Whether `value` is true in any process."""
    return bool(total(torch.tensor(int(value))))


def from_first(make: Callable[[], T]) -> T:
    """The result of `make` in the first process, sent to all; its `InputError` is raised in all."""
    if processes() == 1:
        return make()
    made: list[Any] = [None, None]
    if is_first():
        try:
            made[0] = make()
        except InputError as error:
            made[1] = error.problems
    dist.broadcast_object_list(made)
    if made[1] is not None:
        raise InputError(made[1])
    result: T = made[0]
    return result
