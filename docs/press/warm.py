"""What takes its time to import, for processes that are forked from one that has it; nothing of the book."""

import contextlib
import logging

with contextlib.suppress(ImportError):  # it is there where the site is built, and cuts Chinese for the search
    import jieba

    jieba.setLogLevel(logging.WARNING)
    jieba.initialize()
