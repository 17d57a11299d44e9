"""Trials: what a supervisor has to stand, each a command that says in words whether it did."""
