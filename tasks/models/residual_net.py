"""What the residual networks share: stages of blocks, normalised in groups."""

import abc
from collections.abc import Sequence
from typing import Any

from tasks.models import variables as variables_lib


class ResidualNet(abc.ABC):
  """A stem, stages of blocks, a head; stage s is of width 2^s `filters`.

  Subclasses say what the three are: they create the weights in `_make_stem`,
  `_make_block` and `_make_head`, called in this order, and apply them.
  """

  uses_dropout = False

  @abc.abstractmethod
  def _make_stem(self, width: int) -> None:
    """Creates the weights of the stem."""

  @abc.abstractmethod
  def _make_block(self, name: str, width_in: int, width: int) -> Any:
    """Creates the weights of a block; the result ends up in `_blocks`."""

  @abc.abstractmethod
  def _make_head(self, width_in: int, num_classes: int) -> None:
    """Creates the weights of the head."""

  def __init__(
      self,
      num_classes: int,
      seed: int,
      *,
      filters: int = 64,
      blocks: Sequence[int] = (2, 2, 2, 2),
      groups: int = 2,
  ):
    """Creates the weights.

    Args:
      num_classes: int.
      seed: int, seed of the initial values.
      filters: int, width of the stem and the first stage.
      blocks: ints, number of blocks of each stage.
      groups: int, groups of every normalisation.

    Raises:
      ValueError: `filters` do not divide into the groups.
    """
    if filters % groups:
      raise ValueError(
          f'groups: {groups}; {filters} channels do not divide into {groups}'
          ' groups, choose a divisor'
      )
    self.variables = variables_lib.Variables(seed)
    self._groups = groups
    self._make_stem(filters)
    self._blocks: list[Any] = []
    width_in = filters
    for stage, count in enumerate(blocks):
      width = filters * 2**stage
      for index in range(count):
        name = f'stage{stage + 1}/block{index + 1}'
        self._blocks.append(self._make_block(name, width_in, width))
        width_in = width
    self._make_head(width_in, num_classes)
    # What the published code of FedOpt declares weight decay on: no norms.
    self.decayed = [
        v for v in self.variables.trainable if '/norm' not in v.name
    ]
