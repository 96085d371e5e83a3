"""torchvision beside a CPU build of torch."""

from __future__ import annotations

import torch

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_library = torch.library.Library("torchvision", "FRAGMENT")  # its definitions live as long as this object


def register_torchvision_operators() -> None:
    """Define the operators that `import torchvision` describes; call it first, as often as you like.

    torchvision's wheel is linked against the CUDA build of torch. Beside a CPU build its compiled operators do not
    load, and the import fails because they are unknown. With their schemas it succeeds; calling them still does not.
    """
    for schema in _SCHEMAS:
        name = schema.split("(")[0]
        if not hasattr(torch.ops.torchvision, name):
            _library.define(schema)
