"""Tests of the claims: every one has its rule, and the papers' own verdicts."""

import pathlib
import subprocess
import sys

from absl.testing import absltest

from tff_fedopt import papers
from tff_fedopt.papers import claims
from tff_fedopt.tables import claims as rules


class ClaimsTest(absltest.TestCase):

  def test_every_claim_has_one_rule_or_a_reason(self):
    ids = [claim.id for claim in claims.load()]
    self.assertLen(ids, len(set(ids)))
    self.assertCountEqual(ids, [*claims.RULES, *claims.NO_RULE])
    self.assertGreaterEqual(len(claims.RULES), 150)

  def test_the_file_says_what_the_rules_are(self):
    for claim in claims.load():
      rule = claims.RULES.get(claim.id)
      with self.subTest(claim.id):
        self.assertEqual(claim.rule, str(rule) if rule else '')
        self.assertEqual(claim.tables, rule.tables if rule else ())

  def test_published_verdicts_are_as_computed(self):
    every = claims.load()
    for claim, found in zip(every, claims.published_verdicts(every)):
      with self.subTest(claim.id):
        if found.value is None:
          self.assertEqual(claim.published_verdict, '')
        else:
          self.assertEqual(claim.published_value, f'{found.value:.4g}')
          self.assertEqual(claim.published_verdict, found.verdict)

  def test_rules_name_cells_of_the_tables(self):
    keys = {
        name: {
            cell.key
            for profile in ('quick', 'small', 'paper')
            for cell in papers.get(name).cells(profile, None)
        }
        for name in papers.names()
    }
    for id_, rule in claims.RULES.items():
      cells = rules.cells(rule.value)
      wrong = [
          c for c in cells if (c.panel, c.row, c.column) not in keys[c.table]
      ]
      with self.subTest(id_):
        self.assertEmpty(wrong)

  def test_cli_selects_and_refuses(self):
    self.assertEqual(
        [c.id for c in claims.select(['afo-05'])], ['afo-05']
    )
    self.assertTrue(
        all('la_toy' in c.tables for c in claims.select(['la_toy']))
    )
    with self.assertRaisesRegex(ValueError, 'did you mean afo-05'):
      claims.select(['afo-005'])

  def test_command_line_does_without_tensorflow(self):
    code = (
        'import sys\nfrom tff_fedopt.commands import claims\n'
        'code = claims.main(sys.argv[1:])\n'
        'assert "tensorflow" not in sys.modules\nsys.exit(code)'
    )
    run = lambda *arguments: subprocess.run(
        [sys.executable, '-c', code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=pathlib.Path(papers.__file__).parents[2],
    )
    done = run()
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertLen(done.stdout.splitlines(), len(claims.load()) + 1)
    refused = run('nonsense')
    self.assertEqual(refused.returncode, 2)
    self.assertLen(refused.stderr.splitlines(), 1)


if __name__ == '__main__':
  absltest.main()
