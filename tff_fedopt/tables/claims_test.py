"""Tests of the kinds of rules on numbers made by hand."""

from absl.testing import absltest
from absl.testing import parameterized

from tff_fedopt.tables import claims
from tff_fedopt.tables import numbers
from tff_fedopt.tables import verdicts

_NOISE = {'points': 2.0}
_A = claims.Cell('t', 'row', 'a')
_B = claims.Cell('t', 'row', 'b')
_C = claims.Cell('t', 'row', 'c')


def _lookup(**given):
  def lookup(cell):
    if cell.column not in given:
      raise claims.Missing(cell.column)
    number = given[cell.column]
    if isinstance(number, Exception):
      raise number
    if isinstance(number, claims.Number):
      return number
    return claims.Number(number)

  return lookup


def _judge(rule, **given):
  return verdicts.judge(rule, _lookup(**given), _NOISE)


class ClaimsTest(parameterized.TestCase):

  @parameterized.parameters(
      (10, 5, 'reproduced', ''),
      (5, 10, 'contradicted', ''),
      (6, 5, 'undecided', 'one seed'),
      (5, 6, 'undecided', 'one seed'),
  )
  def test_difference(self, a, b, verdict, why):
    found = _judge(claims.Rule(_A - _B, at_least=0), a=a, b=b)
    self.assertEqual((found.verdict, found.why), (verdict, why))
    self.assertEqual(found.value, a - b)

  @parameterized.parameters((0.5, 'undecided'), (3, 'contradicted'))
  def test_equality(self, b, verdict):
    rule = claims.Rule(abs(_A - _B), at_most=1)
    self.assertEqual(_judge(rule, a=0, b=b).verdict, verdict)
    exact = claims.Rule(abs(_A - _B), at_most=1, noise='')
    self.assertEqual(_judge(exact, a=0, b=0.5).verdict, 'reproduced')
    self.assertEqual(_judge(exact, a=0, b=3).verdict, 'contradicted')

  def test_seeds_give_students_interval(self):
    rule = claims.Rule(_A, at_least=0)
    three = claims.Number(4, std=3**0.5, seeds=3)
    found = _judge(rule, a=three)
    self.assertAlmostEqual(found.half_width, 4.3027, places=3)
    self.assertEqual((found.verdict, found.why), ('undecided', 'spread'))
    many = claims.Number(4, std=3**0.5, seeds=9)
    self.assertEqual(_judge(rule, a=many).verdict, 'reproduced')

  def test_least_skips_what_is_not_there(self):
    rule = claims.Rule(claims.least([('a', _A), ('b', _B)]), at_least=0)
    found = _judge(rule, a=5)
    self.assertEqual(found.coverage, 'lowest at a, 1 of 2')
    self.assertEqual(_judge(rule).verdict, 'not run')
    both = _judge(rule, a=5, b=-9)
    self.assertEqual((both.value, both.verdict), (-9, 'contradicted'))
    # Just outside the noise of one, inside that of the least of two.
    self.assertEqual(_judge(rule, a=5, b=-2.1).verdict, 'undecided')
    learnt = _judge(rule, a=claims.NothingLearnt('row'))
    self.assertEqual(learnt.verdict, 'undecided')
    self.assertIn('nothing learnt', learnt.why)

  def test_border_undecides_only_what_it_could_turn(self):
    rule = claims.Rule(_A - claims.best(_B, _C), at_least=0)
    at_border = claims.Number(1, at_border=True)
    found = _judge(rule, a=9, b=5, c=at_border)
    self.assertIn('grid border: row c', found.why)
    good = claims.Number(9, at_border=True)
    self.assertEqual(_judge(rule, a=good, b=5, c=1).verdict, 'reproduced')
    lost = _judge(rule, a=claims.Number(0, at_border=True), b=5, c=1)
    self.assertEqual(lost.verdict, 'undecided')

  def test_rounds(self):
    rule = claims.Rule(_A, at_least=0, rounds=100)
    short = _judge(rule, a=claims.Number(9, rounds=40))
    self.assertEqual(short.why, 'rounds: 40, of at least 100')
    enough = claims.Number(9, rounds=100)
    self.assertEqual(_judge(rule, a=enough).verdict, 'reproduced')

  def test_arithmetic_and_kinds(self):
    lookup = _lookup(a=4.0, b=2.0, c=8.0)
    for expression, value in (
        (_A / _B, 2),
        (2 * _A + _B, 10),
        (1 - _A, -3),
        (claims.spread(_A, _B, _C), 6),
        (claims.mean(_A, _B), 3),
        (claims.share([_A, _B, _C], 0.5), 2 / 3),
        (claims.mean_of_known(claims.Cell('t', 'row', 'x'), _B), 2),
    ):
      with self.subTest(str(expression)):
        self.assertAlmostEqual(expression.evaluate(lookup).value, value)

  @parameterized.parameters(
      ('client_learning_rate=10', 'ours-tuned (client 0, 1 × server 0)', True),
      ('client_learning_rate=1', 'ours-tuned (client -1, 0, 1)', False),
      ('client_learning_rate=0.1', 'ours-tuned (rate 0.1, 0.2)', True),
      ('client_learning_rate=10', 'published', False),
  )
  def test_border(self, setting, source, expected):
    self.assertEqual(numbers.at_border(setting, source), expected)

  def test_a_rule_has_one_bound(self):
    with self.assertRaisesRegex(ValueError, 'either'):
      claims.Rule(_A)


if __name__ == '__main__':
  absltest.main()
