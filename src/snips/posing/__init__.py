"""From what people have, a picture or a measurement in a file, to an inverse problem."""
