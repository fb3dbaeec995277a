"""What the benchmarks share: histories, curves, strategies and pictures."""
