"""What the page remembers of each visitor: a folder of their own, gone when they are."""

from __future__ import annotations

import shutil
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path


@dataclass(eq=False)
class Visitor:
    """One open page. Its folder has a name that nobody can guess, as files in it are served by name."""

    folder: Path
    picture: Path
    gone: bool = False
    told: str = ""  # what was said about the results that are here, as HTML

    @property
    def has_results(self) -> bool:
        return any(self.folder.glob("result-*/*.zip"))

    def new_folder(self) -> Path:
        """For the next results; earlier ones are deleted, as the page shows them no longer."""
        for old in self.folder.glob("result-*"):
            shutil.rmtree(old, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix="result-", dir=self.folder))

    def take_picture(self, uploaded: Path) -> None:
        """Move an upload here; an earlier one is deleted."""
        place = self.folder / "picture"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        self.picture = uploaded.replace(place / uploaded.name)

    def clean(self) -> None:
        """Delete the folder if the visitor is gone: work that was still running may have written to it."""
        if self.gone:
            shutil.rmtree(self.folder, ignore_errors=True)


class Visitors:
    """All open pages, by the identifier that each of them chose at random."""

    def __init__(self, root: Path, first_picture: Path) -> None:
        self.root, self.first_picture = root, first_picture
        self._known: dict[str, Visitor] = {}
        self._lock = threading.Lock()

    def __getitem__(self, key: str) -> Visitor:
        with self._lock:
            if key not in self._known:
                folder = Path(tempfile.mkdtemp(prefix="visitor-", dir=self.root))
                self._known[key] = Visitor(folder, self.first_picture)
            return self._known[key]

    def forget(self, key: str) -> None:
        with self._lock:
            visitor = self._known.pop(key, None)
        if visitor is not None:
            visitor.gone = True
            visitor.clean()
