"""What takes its time to import, for processes that are forked from one that has it; nothing of the book."""

import contextlib
import importlib
import logging

for name in ("fontTools.subset", "jupytext", "math_core", "nbformat.v4", "numpy", "pygments.lexers.python"):
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
with contextlib.suppress(ImportError):  # it is there where the site is built, and cuts Chinese for the search
    import jieba

    jieba.setLogLevel(logging.WARNING)
    jieba.initialize()
