"""The comparison: starts each contender, proves that all send the same bytes, measures, and draws the report."""
