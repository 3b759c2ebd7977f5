"""How far long work is: a bar on a terminal, else a line now and then."""

import sys
import threading
import time

import tqdm

_SECONDS_BETWEEN_LINES = 30.0
_BAR = (
    '{desc} {n_fmt}/{total_fmt} |{bar}| {rate_noinv_fmt}, {remaining}'
    ' left{postfix}'
)


def say(line: str) -> None:
  """Writes a line to standard error, above the bars that are there."""
  tqdm.tqdm.write(line, file=sys.stderr)


class Progress:
  """Counts what is done.

  Where standard error is no terminal, a line says every 30 seconds what the bar
  would; work that is shorter stays silent.
  """

  def __init__(
      self,
      total: int,
      *,
      what: str,
      unit: str,
      done: int = 0,
      leave: bool = True,
      shown: bool = True,
      seconds: float = _SECONDS_BETWEEN_LINES,
  ):
    """Begins.

    Args:
      total: How much there is to do.
      what: What it is.
      unit: What is counted, in the plural.
      done: How much was done before.
      leave: Whether the bar stays in the end.
      shown: Whether anything is to be seen.
      seconds: Between two lines.
    """
    is_terminal = sys.stderr.isatty()
    self._what, self._unit = what, unit
    self._total, self._before, self._done = total, done, done
    self._note = ''
    self._started = time.monotonic()
    self._bar = tqdm.tqdm(
        total=total,
        initial=done,
        desc=what,
        unit=f' {unit}',
        bar_format=_BAR,
        file=sys.stderr,
        leave=leave,
        disable=not (shown and is_terminal),
    )
    self._ended = threading.Event()
    if shown and not is_terminal:
      threading.Thread(
          target=self._say_lines, args=(seconds,), daemon=True
      ).start()

  def note(self, text: str) -> None:
    """What stands behind the count from now on."""
    self._note = text
    self._bar.set_postfix_str(text)

  def update(self) -> None:
    """One more is done."""
    self._done += 1
    self._bar.update()

  def close(self) -> None:
    self._ended.set()
    self._bar.close()

  def _say_lines(self, seconds):
    while not self._ended.wait(seconds):
      say(self._line())

  def _line(self):
    parts = [f'{self._what}: {self._done} of {self._total} {self._unit}']
    if new := self._done - self._before:
      seconds = (time.monotonic() - self._started) / new
      left = tqdm.tqdm.format_interval(seconds * (self._total - self._done))
      parts += [f'{seconds:.3g} s each', f'{left} left']
    return ', '.join(filter(None, [*parts, self._note]))
