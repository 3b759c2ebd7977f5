"""Where FedVRA's dual step is stable.

By (14) a client's λ moves towards its new average gradient by the share

```
s = a γ η Q̃ = a (1 − (1 − γ η)^Q)
```

Above 1 it overshoots, above 2 it diverges. The same holds for a local step,
whose share of the way back to x_0 is γ η. Both hold for plain gradient steps,
not clipped.

Source: Wang, Xu, Wang, Chang, Quek, Sun: Beyond ADMM: A Unified
Client-variance-reduced Adaptive Federated Learning Framework, 2022,
arXiv:2212.01519, equation (14).
"""

from collections.abc import Mapping, Sequence
import math

from tff_fedopt.algorithms import step_rule


def check_all(
    dual: step_rule.StepRule,
    gamma: float,
    rate: float,
    steps: Sequence[int],
    own: Mapping[str, Mapping[str, object]],
    plain: bool,
) -> list[str]:
  """Refuses or comments on values outside the stable range.

  Args:
    dual: The rule of a, `constant` or `rho`.
    gamma: γ.
    rate: η_l.
    steps: Numbers of local steps, see `LocalSteps.telling`; none if only the
      data know.
    own: Hyperparameter to client id to the client's own value.
    plain: Whether local steps are plain gradient steps, not clipped.

  Returns:
    Warnings, one a client that has values of its own and one for the others.

  Raises:
    ValueError: If anything diverges.
  """
  found = []
  clients = sorted({i for by_id in own.values() for i in by_id})
  for client in (None, *clients):

    def value(name, common):
      return own.get(name, {}).get(client, common)  # pylint: disable=cell-var-from-loop

    a = value('dual_step', dual.number)
    whose = '' if client is None else f' of client {client!r}'
    if dual.rule == 'rho' and a > 1:
      raise ValueError(f'dual_step{whose}: ρ is {a:g}; expected at most 1')
    if not plain:
      continue
    warning = _check(
        None if dual.rule == 'rho' else a,
        value('gamma', gamma),
        value('client_learning_rate', rate),
        value('local_steps', steps),
        whose,
    )
    if warning:
      found.append(warning)
  return found


def share(a: float, shrink: float, steps: float) -> float:
  """s after Q local steps, where `shrink` is γ η, below 2."""
  if shrink >= 1:
    return a * (1 - (1 - shrink) ** steps)
  # The same without cancellation where γ η is small.
  return -a * math.expm1(steps * math.log1p(-shrink))


def check_pull(name: str, pull: float, rate: float, whose: str = '') -> None:
  """Refuses a pull back to x_0 that plain local steps cannot follow.

  Args:
    name: The hyperparameter: γ, μ or α.
    pull: Its value.
    rate: η_l.
    whose: Of which client, for the message.

  Raises:
    ValueError: If local steps diverge.
  """
  if pull * rate >= 2:
    raise ValueError(
        f'{name} · client_learning_rate{whose} is {pull * rate:.4g}, and local'
        f' steps diverge from 2 on; use {name} below {2 / rate:.4g}'
    )


def _check(
    a: float | None,
    gamma: float,
    rate: float,
    steps: Sequence[int],
    whose: str,
) -> str | None:
  check_pull('gamma', gamma, rate, whose)
  shrink = gamma * rate
  s, at = 0.0, 0
  if a is not None:
    s, at = max(((share(a, shrink, q), q) for q in steps), default=(s, at))
  if s > 2:
    raise ValueError(
        f'dual_step{whose}: {a:g} makes a γ η Q̃ = {s:.4g} in {at} local'
        f' steps, and above 2 the dual diverges; use at most'
        f' {2 * a / s:.4g}, or rho:R'  # type: ignore[operator]
    )
  if shrink >= 1:
    return (
        f'gamma · client_learning_rate{whose} is {shrink:.4g}: from 1 on local'
        ' steps jump back to x_0, or beyond'
    )
  if a is None or (not steps and a <= 1):
    return None
  if not steps:
    return (
        f'dual_step{whose} is {a:g}: a γ η Q̃ is above 1, where the dual'
        f' overshoots, from {_crossing(a, shrink, 1)} local steps on'
        + (
            ', and above 2, where it diverges, from'
            f' {_crossing(a, shrink, 2)} on'
            if a > 2
            else ''
        )
    )
  if s > 1:
    return (
        f'dual_step{whose}: {a:g} makes a γ η Q̃ = {s:.4g} in {at} local'
        f' steps: above 1 the dual overshoots; up to {a / s:.4g} it does not'
    )
  return None


def _crossing(a, shrink, level):
  """The fewest local steps whose share is above `level`."""
  return math.floor(math.log1p(-level / a) / math.log1p(-shrink)) + 1
