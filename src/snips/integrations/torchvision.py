"""torchvision beside a CPU build of torch."""

from __future__ import annotations

import torch

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou) -> Tensor",
)
_library = torch.library.Library("torchvision", "FRAGMENT")  # its definitions live as long as this object


def register_torchvision_operators() -> None:
    """Make `import torchvision` work where only the schemas of its compiled operators are missing.

    Its wheel is linked against the CUDA build of torch. Beside a CPU build the operators do not load, and the import
    fails because it describes operators that are unknown. Those operators themselves stay unusable; deepinv needs none.
    """
    try:
        import torchvision  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError:
        return  # the caller's own import says so
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        for schema in _SCHEMAS:
            _library.define(schema)
