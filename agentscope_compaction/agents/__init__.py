"""Live agents: hook, decorator, manual calls, and the invariants of an agent's own state."""
