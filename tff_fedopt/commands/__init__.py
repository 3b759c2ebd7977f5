"""The commands: one module each, run by `python -m tff_fedopt COMMAND`."""
