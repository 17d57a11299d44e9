"""Applications that are served and measured. None knows what serves it."""
