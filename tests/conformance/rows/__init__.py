"""The rows of the conformance table, by kind."""
