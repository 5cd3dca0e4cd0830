"""All checks of the sources, one command: `python docs/hooks/check --help`.

pages        what a page must be, and what its two languages must agree about
examples     what each check must find
terms        one word for an idea, from docs/terms.yml
typography   Chinese as a proofreader reads it
update       what blocks print, written anew into their pages
walk         the command: one way through all of it
"""
