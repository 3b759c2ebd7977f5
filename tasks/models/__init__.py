"""Networks of the tasks, and the one wrapper that makes them TFF models."""
