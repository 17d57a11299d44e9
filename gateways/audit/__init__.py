"""Which execution model is safe for an application: it is run under each, and what differs is named with its cause."""
