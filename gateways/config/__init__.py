"""Configuration: one table of directives, read from a file or from the command line into frozen settings.

Knows names, types, ranges and which settings contradict each other; does not know what a setting does.
"""
