"""The command line: parse, call the library, show. Each module of this package registers a few commands."""

from snips.cli import checking, prior_commands, restoring, training
from snips.cli.app import app, main

COMMANDS = (restoring, prior_commands, checking, training)  # imported, so that their commands are registered

__all__ = ["COMMANDS", "app", "main"]
