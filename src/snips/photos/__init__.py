"""Files and arrays of people as pixels: any format, depth and orientation."""
