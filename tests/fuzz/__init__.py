"""Fuzzing of the wires: one property for each execution, two engines that call it (``python -m tests.fuzz``)."""
