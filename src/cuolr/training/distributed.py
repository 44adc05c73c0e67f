"""Several processes that train one policy: `torchrun --nproc-per-node 2 -m cuolr train …`.

All have the same networks and the whole log. Each takes its part of every batch; gradients are added up, so that all
make the same step: that of one process with the whole batch. The first one validates, writes and speaks. With one
process, nothing here does anything.
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
# How long to wait for the others: the first process may be busy validating. A process that dies is noticed at once.
PATIENCE = timedelta(days=1)


@contextmanager
def joined() -> Iterator[None]:
    """Be one of the processes that torchrun started; without torchrun, nothing happens."""
    if not dist.is_torchelastic_launched():
        yield
        return
    # The first step of an optimiser loads it. Loaded after the group is there, it keeps the group for good, and the
    # group's threads then meet an interpreter that is going down, which may end the process by a signal.
    import torch._dynamo  # noqa: F401

    dist.init_process_group("gloo", timeout=PATIENCE)
    try:
        yield
    except InputError:
        if os.environ["LOCAL_RANK"] != "0":
            sys.exit(2)  # all meet the same problems; one process of each machine reports them
        raise
    finally:
        dist.destroy_process_group()


def processes() -> int:
    """How many there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def is_first() -> bool:
    """Whether this process is the one that validates, writes and speaks."""
    return processes() == 1 or dist.get_rank() == 0


def part_of(rows: int) -> slice:
    """The part of a batch that this process takes; they differ by one row at most."""
    if rows < processes():
        raise InputError(f"expected a batch of at least {processes()} lists, one for each process, found {rows}")
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
    """What share of the whole weight this process has; equal shares where there is none."""
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
    """Whether it is so in any process."""
    return bool(total(torch.tensor(int(value))))


def from_first(make: Callable[[], T]) -> T:
    """What the first process makes, for all; bad input that it finds is raised in all."""
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
