"""Every file that a built page names beside it exists: mkdocs itself checks no link that leaves the folder docs."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError

NAMED = re.compile(r"""<[a-z][^>]*?\s(?:src|href)\s*=\s*["']([^"'#?]+)""", re.IGNORECASE)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)  # https:, mailto:, data:


def on_post_build(config: MkDocsConfig) -> None:
    """Called by mkdocs when all files are written."""
    if found := missing_files(Path(config.site_dir)):
        raise PluginError("pages name files that are not part of the site:\n" + "\n".join(found))


def missing_files(site: Path) -> list[str]:
    """page: the file it names."""
    root = site.resolve()
    found = []
    for page in sorted(root.rglob("*.html")):
        for name in sorted(set(NAMED.findall(page.read_text(encoding="utf-8")))):
            if not ELSEWHERE.match(name) and not is_part(root, page, name):
                found.append(f"{page.relative_to(root)}: {name}")
    return found


def is_part(root: Path, page: Path, name: str) -> bool:
    start = root if name.startswith("/") else page.parent  # 404.html names everything from the root
    file = (start / unquote(name).lstrip("/")).resolve()
    return file.is_relative_to(root) and file.exists()
