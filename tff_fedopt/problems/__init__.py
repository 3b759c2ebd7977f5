"""Small problems whose optimum is known."""
