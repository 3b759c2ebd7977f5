"""Data of the tasks: opened, checked, partitioned, given out by client."""
