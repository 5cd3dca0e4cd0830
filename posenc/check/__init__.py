"""Is a model right about positions? Small reports for any model of torch, one's own or Hugging Face's.

Each check runs the model on a few tokens, compares outputs that must be equal, and says in a line what differs, by how
much, what to look at, and where the book explains it. `posenc.check.all(model)` runs all that apply;
`python -m posenc.check PACKAGE:FUNCTION` does so for the model that a function returns. Needs torch.

report      what a check found
models      how models are called: token ids in, an output for each token out
order       does it see order; does it matter where a text starts
decoding    a cache, chunks and pads against one pass without any
steps       why one token at a time goes wrong
chunks      why chunks do
afterpads   why decoding after pads does
places      at which positions tokens after a cache are put
held        what a cache holds and hands over
handed      keys on their way from the cache to the scores
seen        what attention gets, and which keys a call after a cache shows
pads        masks and pads against one pass without any
undermask   which layer a mask changes that must not
generating  positions that generate() of transformers gives a model
sources     models with an encoder and a decoder, part by part
crossed     cross-attention whose scores hold more than products
masks       which tokens reach which
documents   documents that are packed into one row, and their mask
lengths     what happens at the last position and beyond; positions in short formats
loading     frequencies and the configuration; a model that is saved, or emptied, and loaded
instances   code that belongs to one instance of a model
guesses     usual mistakes in frequencies, by their names
rotations   queries and keys as they are turned, and the configuration
rotated     what a rotary function gets and gives back
turns       by what queries and keys were turned
faraway     scores of turned queries and keys, far from 0 and in short formats
scales      factors of scores, and the configuration
slopes      slopes of ALiBi, and the published ones
buckets     buckets of T5, and those of its paper
weights     weights of attention that masks and biases alone make
layouts     how a rotary function pairs columns, and which way it turns
compiled    torch.compile
tried       what they find in models and layers of other libraries
every       all of them
"""

from posenc.check.buckets import check_buckets
from posenc.check.compiled import check_compile
from posenc.check.decoding import check_decoding
from posenc.check.every import check_all as all
from posenc.check.generating import check_generate
from posenc.check.layouts import check_layout
from posenc.check.lengths import check_length, check_precision
from posenc.check.loading import check_loading
from posenc.check.masks import check_mask
from posenc.check.order import check_order, check_shift
from posenc.check.report import Finding, Report
from posenc.check.rotations import check_rotation
from posenc.check.scales import check_scale
from posenc.check.slopes import check_slopes

__all__ = [
    "Finding",
    "Report",
    "all",
    "check_buckets",
    "check_compile",
    "check_decoding",
    "check_generate",
    "check_layout",
    "check_length",
    "check_loading",
    "check_mask",
    "check_order",
    "check_precision",
    "check_rotation",
    "check_scale",
    "check_shift",
    "check_slopes",
]
