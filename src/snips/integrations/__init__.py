"""Operators, denoisers and conventions of other libraries. Each module needs its library only when it is used."""
