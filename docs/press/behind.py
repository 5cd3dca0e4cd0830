"""Stub."""

SERVING = False


def first(root): ...
def attach(server, root): ...
