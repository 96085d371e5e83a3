"""The command line: parse, call the library, show. Each module of this package registers a few commands."""

from snips.cli import batch, checking, degrading, doctor, experiment, prior_commands, restoring, training, web
from snips.cli.app import app, main

# Imported, so that their commands are registered.
COMMANDS = (restoring, batch, degrading, prior_commands, checking, training, experiment, web, doctor)

__all__ = ["COMMANDS", "app", "main"]
