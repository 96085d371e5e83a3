"""Pages that join the navigation as soon as they exist, so that they can be written apart from mkdocs.yml."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

LATE_PAGES = {
    "Fast sampler": "fast_sampler.md",
    "Other samplers": "peers.md",
    "Architecture": "architecture.md",
    "Batches": "batch.md",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    assert config.nav is not None, "mkdocs.yml has a navigation"
    config.nav += [{title: name} for title, name in LATE_PAGES.items() if (Path(config.docs_dir) / name).is_file()]
    return config
