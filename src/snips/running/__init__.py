"""What surrounds a run: its sampler's settings, device, cost, and whether more calls would change it."""
