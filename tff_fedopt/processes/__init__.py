"""The four TFF processes that every algorithm is composed of."""
