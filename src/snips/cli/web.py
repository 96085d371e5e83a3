"""Command: web."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from snips.cli.app import app, err, out
from snips.extras import installing
from snips.web.limits import Limits
from snips.web.server import LOCALHOST, PORT, is_local, serve

DEFAULT = Limits()


@app.command()
def web(
    host: Annotated[str, typer.Option(help="The address to listen at; others than this machine's are a risk.")] = (
        LOCALHOST
    ),
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen at.")] = PORT,
    browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    pixels: Annotated[int, typer.Option("--max-pixels", min=1, help="The largest picture.")] = DEFAULT.pixels,
    megabytes: Annotated[float, typer.Option("--max-mb", help="The largest upload, in MB.")] = (
        DEFAULT.upload_bytes / 2**20
    ),
    jobs: Annotated[int, typer.Option(min=1, help="Restorations at once; others wait.")] = DEFAULT.jobs,
    waiting: Annotated[int, typer.Option(min=0, help="How many may wait.")] = DEFAULT.waiting,
) -> None:
    """Restore pictures in a web page, on this machine and without any connection to others.

    Example: `snips web --open`
    """
    if find_spec("gradio") is None:
        raise ValueError(f"the web page needs Gradio: {installing('web')}")
    limits = Limits(upload_bytes=int(megabytes * 2**20), pixels=pixels, jobs=jobs, waiting=waiting)
    if not is_local(host):
        err.print(
            f"snips: warning: {host} can be reached from other machines, and there is no password: whoever reaches it "
            "can use this machine's processor. Leave out --host to stay on this machine.",
            style="yellow", markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip
    serve(limits, host, port, browser, lambda text: out.print(text, highlight=False, markup=False, soft_wrap=True))
