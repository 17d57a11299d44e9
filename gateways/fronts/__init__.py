"""Configurations for the web servers that stand in front of ours: what each must be told, and why."""
