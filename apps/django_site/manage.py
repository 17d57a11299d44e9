#!/usr/bin/env python3
"""Django's command line for this project: ``python apps/django_site/manage.py migrate``, ``createsuperuser`` ..."""

import os
import sys


def main() -> None:
    """Run the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
