"""The ledger: what is said of positions, the verdict, and a measurement that must still give it.

`ledger` holds what a claim is, and prints them; the other modules are the groups of claims, each a short function
that calls posenc and returns numbers: `formulas`, `code`, `precision`, `order`, `inputs`, `attention`, `reach`,
`longer` (computed, and from the files of the trainings), `padding`, `serving`. Their words in both languages are in
words.json. Needs torch.
"""

from posenc.experiments.claims import (  # noqa: I001
    formulas, code, precision, order, inputs, attention, reach, longer, padding, serving,
)  # fmt: skip
from posenc.experiments.claims.ledger import CLAIMS, Claim, Found, claim_table, claim_words

__all__ = ["CLAIMS", "Claim", "Found", "claim_table", "claim_words"]

GROUPS = (formulas, code, precision, order, inputs, attention, reach, longer, padding, serving)
"""In the order of the page: each has filled the ledger when it was imported, in this order."""
