"""Execution models: what happens to run the application for one exchange."""
