"""A page made by several XSLT steps, with or without a cache of what the steps made: WSGI middleware, and a site of it.

``middleware`` answers; ``stylesheets`` runs one step; ``files`` reads, within one folder, and tells what has changed;
``entries`` is what a cache keeps; ``caches`` and ``redis_cache`` keep it; ``site`` is an application made of all that.
It needs lxml, which is why it is an extra: Python's standard library has no XSLT.
"""
