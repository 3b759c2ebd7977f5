"""Declared tables: from a spec to runs, from runs to numbers, files, plots."""
