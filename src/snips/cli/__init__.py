"""The command line: parse, call the library, show. Each module of this package registers a few commands."""

from snips.cli import degrading, prior_commands, restoring, training, web
from snips.cli.app import app, main

COMMANDS = (restoring, degrading, prior_commands, training, web)  # imported, so that their commands are registered

__all__ = ["COMMANDS", "app", "main"]
