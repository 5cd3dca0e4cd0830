"""All checks of the sources, one command: `python docs/hooks/check --help`.

pages        what a page must be, and what its two languages must agree about
pieces       a page as headings, paragraphs, items, rows and captions, with their numbers, code and formulas
said         what both languages say, piece by piece
held         names, numbers and letters, held against posenc, the outputs and the notation; claims of figures
examples     what each check must find
terms        one word for an idea, from docs/terms.yml
typography   Chinese as a proofreader reads it
update       what blocks print, written anew into their pages
walk         the command: one way through all of it
"""
