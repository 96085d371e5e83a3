"""Let torchvision be imported beside a torch build that its binary does not fit."""

from __future__ import annotations

import torch

# torchvision describes the shapes of these operators while it is imported, and they are declared by its binary alone.
SCHEMAS = {
    "torchvision::nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "torchvision::qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}


def register_torchvision_operators() -> None:
    """Declare them where torchvision's binary, built for CUDA, cannot be loaded beside a CPU build of torch.

    Call it before `import torchvision`. Without it the import fails, although transforms, models and datasets need no
    binary. Calling it again, or beside a binary that works, changes nothing.
    """
    try:
        import torchvision  # noqa: F401
    except ImportError:
        return  # absent, which the caller reports
    except RuntimeError:  # "operator torchvision::nms does not exist"
        for name, schema in SCHEMAS.items():
            if not _declared(name):
                torch.library.define(name, schema)


def _declared(name: str) -> bool:
    return torch._C._dispatch_has_kernel(name) or name in torch._C._dispatch_get_all_op_names()
