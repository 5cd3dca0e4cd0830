"""What turns pages into books: `python -m press` lists its commands.

hook.py is the only file that MkDocs loads. Of all others books.py alone imports MkDocs, which builds each language.

pages           the one reader: front matter, navigation, headings, blocks, formulas, links
uncollected     what looks like Python and is not run
running         runs the blocks while the book is built, and holds what they did against their pages
labs            notebooks, both languages in one     snippets        blocks that a reader takes along
figures         drawings as inline SVG               formulas        TeX as MathML, and its font
made            what is made from a file for a page          glossary        the words of docs/terms.yml
references      the papers of docs/references.bib                exercises           their lines, list and links
reference       public names, from their docstrings            course              the weeks of a course
numbers         what stands in a text or a drawing   claims          what a figure's words claim of its curves
live            figures that can be moved by hand    markup          Markdown and HTML of a page, for readers
chinese         line breaks, emphasis, words         search          what a search finds first
languages       the page in the other language       reading_order   where a page stands in its book
said            what chapters call false, gathered   material        what is changed in Material for MkDocs
exports         a page as a script and as Markdown   notebooks       a chapter as a notebook
plain           text as others read Markdown         figure_files    figures as files, each with its caption
book            what is known of a book from step to step
columns         room behind wide labels of an output
cache           what is kept between two builds
page_facts      addresses, version, corrections      cards           the picture beside a link to a page
feed            CHANGELOG.md for feeds               inline          what scripts need, for uv
kept_pages      pages that need no second build      behind          blocks that run while a book is served
check           all checks of the sources            offline         the zip, the PDFs, slides
runtime         Python in the page                   warm            imports, made once for all processes
"""


class BookError(ValueError):
    """What stops the build: the message names page and line."""
