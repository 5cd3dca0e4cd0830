"""The book to take away: the site as a zip (archive) and a PDF of each book (pdf)."""
