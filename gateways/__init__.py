"""One unmodified application, served through every gateway the web has had.

Importing this package has no effect and costs next to nothing; ``gateways.server`` ties the parts together.
"""

__version__ = "0.1.0"
