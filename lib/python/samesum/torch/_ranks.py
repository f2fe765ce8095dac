"""The ranks of a process group of torch.distributed."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def _bytes(t: Tensor) -> Tensor:
    """Returns the elements as bytes: not every engine has every type."""
    return t.reshape(-1).view(torch.uint8)


class GroupRanks:
    """The ranks of a group, as `Ranks`; None is the group of all ranks."""

    def __init__(self, group: Any) -> None:
        self.group, self.rank, self.size = group, dist.get_rank(group), dist.get_world_size(group)
        if self.rank < 0:
            raise ValueError("samesum: this rank is not in the group; call the function on the ranks of the group only")

    def all_gather(self, value: Any) -> list[Any]:
        values = [None] * self.size
        dist.all_gather_object(values, value, group=self.group)
        return values

    def all_to_all(self, rows: Any, received: Any) -> None:
        dist.all_to_all_single(_bytes(received), _bytes(rows), group=self.group)

    def all_gather_rows(self, row: Any, rows: Any) -> None:
        dist.all_gather_into_tensor(_bytes(rows), _bytes(row), group=self.group)
