"""Directives: one table behind the command line, the TOML file and the reference."""
