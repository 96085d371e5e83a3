"""The built pages load nothing from another host: no script, style, font or picture. A page that does is an error."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError

# What a browser fetches by itself. Links that a reader follows (<a href>) may lead anywhere.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\b(?:src|srcset)\s*=\s*["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*?\bhref\s*=\s*["']?(?:https?:)?//[^"'\s>]+""",
    re.IGNORECASE,
)
FETCHED_BY_STYLES = re.compile(r"""(?:@import\s+|url\()\s*["']?(?:https?:)?//[^"')\s]+""", re.IGNORECASE)
PATTERNS = {".html": (FETCHED, FETCHED_BY_STYLES), ".css": (FETCHED_BY_STYLES,)}


def on_post_build(config: MkDocsConfig) -> None:
    """Called by mkdocs when all files are written."""
    if found := external_references(Path(config.site_dir)):
        raise PluginError("the site would load from other hosts:\n" + "\n".join(found))


def external_references(site: Path) -> list[str]:
    """file: what it would load."""
    files = [file for file in sorted(site.rglob("*")) if file.suffix in PATTERNS]
    return [
        f"{file.relative_to(site)}: {match[0][:120]}"
        for file in files
        for pattern in PATTERNS[file.suffix]
        for match in pattern.finditer(file.read_text(encoding="utf-8"))
    ]
