"""Bridges to other libraries; each is imported only where it is used."""
