"""The three phases: benchmark and profile, match and fix, generate and validate."""
