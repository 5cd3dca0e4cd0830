"""Runs the blocks of the pages while the book is built.

execute         runs one block, in a process of its own
book_blocks     the blocks of a book, from the cache or run
dependencies    which modules of posenc a block can reach
outputs         what a block did, held against its page
pytest_plugin   blocks under pytest
trainings       done once for the blocks of both languages
"""
