"""How results are shown: as a table on a terminal, in words, and as one HTML file with drawings."""
