"""Pictures of results for people."""

from snips.operators.pictures import is_picture
from snips.report.embedding import data_uri
from snips.report.grid import (
    STD_SCALE,
    comparison_columns,
    comparison_grid,
    degraded_view,
    picture_grid,
)

__all__ = [
    "STD_SCALE",
    "comparison_columns",
    "comparison_grid",
    "data_uri",
    "degraded_view",
    "is_picture",
    "picture_grid",
]
