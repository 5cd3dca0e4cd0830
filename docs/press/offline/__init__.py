"""The book to take away: the site as a zip (archive), a PDF of each book (pdf), slides of its chapters (slides)."""
