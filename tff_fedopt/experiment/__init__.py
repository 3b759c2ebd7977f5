"""Running experiments: specs, the run loop, sampling, checkpoints, metrics."""
