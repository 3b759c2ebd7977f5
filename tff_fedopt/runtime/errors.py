"""What a computation's failure is called, on whatever engine it ran."""

import re

_PLACE = re.compile(r'\[\[\{\{.*?\}\}\]\]')
# What TensorFlow and TFF's worker say around the reason.
_AROUND = re.compile(
    r'\{\{function_node \S+\}\} '
    r'|^Failed to run computation: '
    r'| while evaluating local .*$'
    r'| \[Op:\w+\]'
)


def failure(details: str) -> RuntimeError:
  """Returns the error of a computation that failed, its text in one line.

  Args:
    details: What TensorFlow said: the reason, and where as `[[{{node NAME}}]]`.
  """
  line = ' '.join(details.split())
  places = _PLACE.findall(line)
  reason = _AROUND.sub('', _PLACE.sub('', line)).strip()
  text = ' '.join(['the computation failed:', reason, *places[:1]])
  return RuntimeError(text)
