"""A table's result as Markdown, LaTeX and figures."""
