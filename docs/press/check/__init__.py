"""All checks of the sources, one command: `python -m press check --help`.

pages               what a page must be, and what its two languages must agree about
segments            a page as headings, paragraphs, items, rows and captions, with their numbers, code and formulas
compare_languages   what both languages say, segment by segment
facts               names, numbers and letters, held against posenc, the outputs and the notation; claims of figures
exercises           their comments, answers and checks
course              its weeks
questions           their sentences, links and numbers
reference           public names without an entry or a section, and what docstrings lack
planted             what each check must find
terms               one word for an idea, from docs/terms.yml
typography          Chinese as a proofreader reads it
twins               sections of which only one language has changed
update_outputs      what blocks print, written anew into their pages
cli                 the command: one way through all of it
"""
