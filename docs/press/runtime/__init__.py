"""Python for the pages: the command that fetches it once (fetch.py), what it is made of (pins.txt), its licences."""
