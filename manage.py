#!/usr/bin/env python
"""The command line of ClawPanel."""

import os
import sys

from django.core.management import execute_from_command_line

from clawpanel.refusal import CannotStart

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "clawpanel.settings")
    try:
        execute_from_command_line(sys.argv)
    except CannotStart as refusal:
        sys.stderr.write(f"clawpanel: {refusal}\n")
        sys.exit(2)
