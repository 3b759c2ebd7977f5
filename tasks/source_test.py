"""Sources of settings."""

import pytest

import tasks
from tasks import source


@pytest.mark.parametrize('kind', source.KINDS)
def test_text_and_back(kind):
  one = source.Source(kind, 'a paper: Section 5, Table 1')
  assert str(one) == f'{kind}: a paper: Section 5, Table 1'
  assert source.Source.parse(str(one)) == one
  assert one == getattr(source, kind)('a paper: Section 5, Table 1')
  assert one.is_theirs == (kind in ('published', 'code'))


@pytest.mark.parametrize(
    'text, message',
    [
        (
            'remembered: so',
            "kind of source 'remembered'; one of published, cod",
        ),
        ('ours', "unknown kind of source 'ours'"),
        ('', "unknown kind of source ''"),
        ('guessed', 'a source that is guessed, and nothing more'),
        ('code: ', 'a source that is code, and nothing more'),
    ],
)
def test_what_is_no_source_is_refused(text, message):
  with pytest.raises(ValueError, match=message) as e:
    source.Source.parse(text)
  assert '\n' not in str(e.value)


@pytest.mark.parametrize('name', tasks.PUBLISHED)
def test_every_option_and_the_published_setting_has_a_source(name):
  info = tasks.info(name)
  assert info.published.source.is_theirs or name == 'cifar10'
  for option, value in info.options.items():
    assert value.source is not None, option
    assert value.source.kind != source.TUNED
