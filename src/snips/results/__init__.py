"""Finished and half-finished restorations: in memory, on the disk, and labelled for xarray."""
