"""From raw examples to the batches of a model."""
