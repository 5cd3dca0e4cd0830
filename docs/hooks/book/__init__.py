"""The line that turns pages into books, free of whoever renders them: no module here imports MkDocs.

page        the one reader: front matter, navigation, headings, blocks, formulas, links
unread      what looks like Python and is not run
run         runs one block                           outputs      holds what it did against its page
blocks      those of a book, from the cache (cache) or in a fresh interpreter; reach: what they depend on
labs        notebooks as pages                      blocktests   blocks under pytest
figures     drawings as inline SVG                  formulas     TeX as MathML, and its font
numbers     what stands in a text or a drawing      take         blocks that a reader takes along
claims      what a figure's words claim of its curves
setting     what becomes of the Markdown and the HTML of a page
chinese     line breaks, emphasis, words            search       what a search finds first
twins       the page in the other language          way          where a page stands in its book
runtime     Python for the pages                    inpage       runs a block there
patches     what is changed in Material             state        what is known of a book from step to step
exports     a page as a script and as Markdown, contents for models
"""


class BookError(ValueError):
    """What stops the build: the message names page and line."""
