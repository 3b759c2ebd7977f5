"""Optimizers as the papers write them, for servers and clients alike."""
