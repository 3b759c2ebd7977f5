"""FedVRA's rules for a step: a number, or where the number comes from."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class StepRule:
  """A rule of the dual step a or the aggregation step d.

  Attributes:
    rule: `constant`, `rho`, `N/m` or `1/sum`; see `fedvra`.
    number: The step itself, or R of `rho`; 1 for the others.
  """

  rule: str = 'constant'
  number: float = 1.0

  @classmethod
  def parse(
      cls, name: str, rules: tuple[str, ...], given: 'str | float | StepRule'
  ) -> 'StepRule':
    """Reads a rule from its text.

    Args:
      name: Whose rule it is, for the message.
      rules: The rules that there are for it, beside a number.
      given: A number, `rho:R`, `N/m` or `1/sum`; a rule stays what it is.

    Returns:
      A `StepRule`.

    Raises:
      ValueError: If the text is none of these.
    """
    found = given if isinstance(given, cls) else _read(str(given).strip())
    if found is None or found.rule not in ('constant', *rules):
      raise ValueError(
          f'{name}: {given!r}; expected 0 or above, or '
          + ' or '.join(
              'rho:R with R in [0, 1]' if r == 'rho' else r for r in rules
          )
      )
    return found

  def __str__(self):
    if self.rule in ('N/m', '1/sum'):
      return self.rule
    number = repr(self.number).removesuffix('.0')
    return number if self.rule == 'constant' else f'{self.rule}:{number}'


def _read(text):
  if text in ('N/m', '1/sum'):
    return StepRule(text)
  rule, _, number = text.rpartition(':')
  try:
    value = float(number)
  except ValueError:
    return None
  largest = 1 if rule == 'rho' else math.inf
  if not 0 <= value <= largest or math.isinf(value):
    return None
  return StepRule(rule or 'constant', value)
