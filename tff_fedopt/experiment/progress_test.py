"""What is seen of long work, with a terminal and without."""

import io
import re
import sys
import threading

import pytest
import tqdm

from tff_fedopt.experiment import progress
from tff_fedopt.testing import pids


class _Terminal(io.StringIO):

  def isatty(self):
    return True


def _lines(stream):
  return stream.getvalue().splitlines()


def test_without_a_terminal_lines_say_round_metric_rate_and_time_left(
    monkeypatch,
):
  stream = io.StringIO()
  monkeypatch.setattr(sys, 'stderr', stream)
  shown = progress.Progress(
      100, what='a run', unit='rounds', done=40, seconds=0.01
  )
  pids.wait_for(
      lambda: 'a run: 40 of 100 rounds' in _lines(stream), 60, 'a first line'
  )
  shown.update()
  shown.note('accuracy 0.5')
  wanted = (
      r'a run: 41 of 100 rounds, [\d.e-]+ s each, [\d:]+ left, accuracy 0\.5'
  )
  pids.wait_for(
      lambda: any(re.fullmatch(wanted, line) for line in _lines(stream)),
      60,
      'a line',
  )
  before = threading.active_count()
  shown.close()
  pids.wait_for(lambda: threading.active_count() < before, 60, 'the thread')
  count = len(_lines(stream))
  assert count == len(_lines(stream)) and '|' not in stream.getvalue()


@pytest.mark.parametrize('shown', [True, False])
def test_short_work_and_work_that_is_not_shown_stay_silent(monkeypatch, shown):
  stream = io.StringIO()
  monkeypatch.setattr(sys, 'stderr', stream)
  bar = progress.Progress(2, what='a run', unit='rounds', shown=shown)
  bar.update()
  bar.note('loss 1')
  bar.close()
  assert not stream.getvalue()


def test_a_terminal_has_a_bar_and_lines_stand_above_it(monkeypatch):
  stream = _Terminal()
  monkeypatch.setattr(sys, 'stderr', stream)
  bar = progress.Progress(2, what='a run', unit='rounds')
  bar.note('loss 1')
  progress.say('something else')
  bar.update()
  bar.close()
  text = stream.getvalue()
  assert re.search(r'a run 0/2 \|.*\|.*loss 1', text)
  # The bar is cleared first, so that the line has one of its own.
  assert re.search(r'\r\s*\rsomething else\n', text)
  assert not tqdm.tqdm._instances
