"""Python for the pages: the command that fetches it once (fetch), what it is made of (pins.txt), what of it goes
into a site (pyodide), what runs blocks there (in_page), its licences (NOTICE.txt).
"""
