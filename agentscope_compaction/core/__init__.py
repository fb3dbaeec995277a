"""The pure core: plain JSON in, plain JSON out; no I/O, clock, randomness or ``async``."""
