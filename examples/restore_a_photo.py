"""Enlarge a small photo four times. Its noise level is stated, the prior is chosen by the image's size."""

from pathlib import Path

from PIL import Image

import snips

photo = Image.open(Path(snips.__file__).parent / "assets" / "example.png")
small = photo.reduce(4)  # 16 x 16 pixels: averages of 4 x 4 blocks

# Without visible noise, a little is stated all the same: the photo was rounded to 8 bits. "auto" would estimate it.
result = snips.restore(small, operator="sr4", sigma_0=0.02, samples=2, nfe=10)
print(result)
result.save("enlarged", force=True)
print("open enlarged/report.html")
