"""Decision models: one seam, the embedded default and the bundled clients."""
