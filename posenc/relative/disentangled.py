"""Words and places apart: the four terms of a score, with places absolute or by their offset.

Sources: Dai et al., Transformer-XL (2019), https://arxiv.org/abs/1901.02860; He et al., DeBERTa (2021),
https://arxiv.org/abs/2006.03654; Ke et al., TUPE (2021), https://arxiv.org/abs/2006.15595.
"""

from __future__ import annotations

from posenc._arrays import Array, ArrayLike, ArrayT, device_of, namespace
from posenc._checks import check_flag, floating
from posenc.relative.tables import relative_bias
from posenc.relative.vectors import row_index, take_along

__all__ = ["disentangled_scores", "four_terms", "relative_shift", "untie_first"]


def four_terms(
    query: ArrayT,
    key: ArrayT,
    query_codes: ArrayT,
    key_codes: ArrayT,
    *,
    word_word: bool = True,
    word_place: bool = True,
    place_word: bool = True,
    place_place: bool = True,
) -> ArrayT:
    """The score of two sums of a word and a place, before it is scaled, each of its terms with a switch.

    S(t, u) = q_t · k_u + q_t · a_u + b_t · k_u + b_t · a_u.

    Codes that are added to embeddings have b_t = p_t W_Q and a_u = p_u W_K, with the matrices of the words. TUPE has
    only the first term and the last, with matrices of their own.

    Args:
        query, key: q and k, made from words: shapes (..., n_q, d) and (..., n_k, d), floating.
        query_codes: b, made from places: shape (n_q, d), or the shape of query.
        key_codes: a, likewise: shape (n_k, d), or the shape of key.
        word_word, word_place, place_word, place_place: whether the term is there, in the order of the formula.

    Returns:
        Array (..., n_q, n_k) of the dtype of query.

    Raises:
        TypeError: the arrays differ in library or dtype, or are not floating.
        ValueError: codes have not the shape of the vectors that they belong to, or no term is left.

    >>> import numpy as np
    >>> word, place = np.array([[1.0, 0], [0, 1]]), np.array([[2.0, 0], [0, 3]])
    >>> four_terms(word, word, place, place)
    array([[ 9.,  0.],
           [ 0., 16.]])
    >>> four_terms(word, word, place, place, word_place=False, place_word=False)
    array([[ 5.,  0.],
           [ 0., 10.]])

    Source: Dai et al. (2019), section 3.3; Ke et al. (2021), section 3.1.
    """
    xp = floating(query=query, key=key, query_codes=query_codes, key_codes=key_codes)
    _check_pair(query, key)
    for name, codes, x in (("query_codes", query_codes, query), ("key_codes", key_codes, key)):
        if tuple(codes.shape) not in (tuple(x.shape), tuple(x.shape[-2:])):
            raise ValueError(
                f"{name} must have shape {tuple(x.shape[-2:])} or that of {name[:-6]}, got {tuple(codes.shape)}"
            )
    switches = {
        "word_word": (word_word, query, key),
        "word_place": (word_place, query, key_codes),
        "place_word": (place_word, query_codes, key),
        "place_place": (place_place, query_codes, key_codes),
    }
    scores = xp.zeros_like(query @ xp.matrix_transpose(key))
    for name, (there, left, right) in switches.items():
        if check_flag(name, there):
            scores = scores + left @ xp.matrix_transpose(right)
    return scores


def disentangled_scores(
    query: ArrayT,
    key: ArrayT,
    key_table: ArrayT | None = None,
    query_table: ArrayT | None = None,
    bias: ArrayT | None = None,
    *,
    words: bool = True,
    query_positions: int | ArrayLike | None = None,
    key_positions: int | ArrayLike | None = None,
) -> ArrayT:
    """The four terms with places by their offset, before they are scaled; what is None is left out.

    S(t, u) = q_t · k_u + q_t · a_j + b_j · k_u + c_j, with j = clip(u − t, −K, K) + K.

    DeBERTa has the first three, divided by sqrt(3 d). Transformer-XL has all: a_j is a sinusoid of the offset times a
    matrix, b_j the same vector in every row, c_j = v · a_j. The second term alone is `posenc.relative.shaw_scores`.

    Args:
        query, key: shapes (..., n_q, d) and (..., n_k, d), floating.
        key_table: a, shape (2K + 1, d), or (heads, 2K + 1, d) for a query (..., heads, n_q, d).
        query_table: b, of such a shape too. Its K may be another.
        bias: c, shape (2K + 1,) or (2K + 1, heads), as in `posenc.relative_bias`.
        words: whether the first term is there.
        query_positions, key_positions: as in `posenc.relative.shaw_scores`. If both are None, the queries are the
            last of the keys.

    Returns:
        Array (..., n_q, n_k) of the dtype of query.

    Raises:
        TypeError: the arrays differ in library or dtype, or are not floating.
        ValueError: a table does not fit the width or the heads of query, or no term is left.

    >>> import numpy as np
    >>> x, left = np.eye(3), np.array([[1.0, 0, 0], [0, 0, 0], [0, 0, 0]])  # for keys on the left
    >>> disentangled_scores(x, x, key_table=left, words=False)  # if the query is the first word
    array([[0., 0., 0.],
           [0., 0., 0.],
           [0., 0., 0.]])
    >>> disentangled_scores(x, x, query_table=left, words=False)  # if the key is the first word
    array([[0., 0., 0.],
           [1., 0., 0.],
           [1., 0., 0.]])

    Source: Dai et al. (2019), section 3.3; He et al. (2021), section 3.1.
    """
    given = {"key_table": key_table, "query_table": query_table, "bias": bias}
    xp = floating(query=query, key=key, **{name: x for name, x in given.items() if x is not None})
    _check_pair(query, key)
    t, u = query_positions, key_positions
    if t is None:
        t = query.shape[-2]
        u = key.shape[-2] if u is None else u
    products = query @ xp.matrix_transpose(key)
    scores = products if check_flag("words", words) else xp.zeros_like(products)
    for name, table, x in (("key_table", key_table, query), ("query_table", query_table, key)):
        if table is None:
            continue
        if tuple(table.shape) not in [(*lead, table.shape[-2], x.shape[-1]) for lead in ((), x.shape[-3:-2])]:
            heads = "" if x.ndim < 3 else f" or ({x.shape[-3]}, 2K + 1, {x.shape[-1]})"
            raise ValueError(
                f"{name} must have shape (2K + 1, {x.shape[-1]}){heads}, got {tuple(table.shape)}"
            )
        index = row_index(table.shape[-2], query.shape[-2], t, u, query, xp, name)
        _check_pairs(index, products)
        by_row = x @ xp.matrix_transpose(table)
        if name == "key_table":
            scores = scores + take_along(by_row, index, xp)
        else:
            # The products of the keys, (..., n_k, 2K + 1): the row of each pair is the same, read by key.
            scores = scores + xp.matrix_transpose(take_along(by_row, xp.matrix_transpose(index), xp))
    if bias is not None:
        if bias.ndim == 2 and tuple(bias.shape[1:]) != tuple(query.shape[-3:-2]):
            raise ValueError(
                f"bias must have shape (2K + 1,) or (2K + 1, heads) with the heads of query, got {tuple(bias.shape)}"
            )
        places = relative_bias(bias, t, u)
        _check_pairs(places, products)
        scores = scores + places
    return scores


def relative_shift(products: ArrayT) -> ArrayT:
    """The trick of Transformer-XL: products by offset become products by key, and nothing is looked up.

    S(t, u) = P(t, c), where column c is that of the offset u − t, of offsets −(n_k − 1), ..., n_q − 1 in this order.

    A column of zeros goes before the products, the numbers are read as rows of n_q, the first row is dropped, and what
    is left is read as n_q rows again: each begins one number further to the left than the row above it.

    Args:
        products: shape (..., n_q, n_q + n_k − 1). The queries are at the last n_q of the n_k key positions.

    Returns:
        Array (..., n_q, n_k) with the same numbers, bit for bit.

    Raises:
        ValueError: fewer than 2 · n_q − 1 columns, which means n_q above n_k.

    >>> import numpy as np
    >>> relative_shift(np.array([[-2, -1, 0, 1, 2], [-20, -10, 0, 10, 20], [-200, -100, 0, 100, 200]]))
    array([[   0,    1,    2],
           [ -10,    0,   10],
           [-200, -100,    0]])

    Source: Dai et al. (2019), appendix B.
    """
    xp = namespace(products=products)
    if products.ndim < 2 or products.shape[-2] < 1 or products.shape[-1] < 2 * products.shape[-2] - 1:
        raise ValueError(
            "products must have shape (..., n_q, n_q + n_k - 1) with n_k >= n_q >= 1, "
            f"got {tuple(products.shape)}"
        )
    *lead, n_query, columns = products.shape
    zeros = xp.zeros((*lead, n_query, 1), dtype=products.dtype, device=device_of(products))
    rows = xp.reshape(xp.concat([zeros, products], axis=-1), (*lead, columns + 1, n_query))
    shifted = xp.reshape(rows[..., 1:, :], (*lead, n_query, columns))
    return shifted[..., : columns - n_query + 1]


def untie_first(bias: ArrayT, from_first: ArrayT, to_first: ArrayT) -> ArrayT:
    """TUPE's bias: its first row and its first column are one trained number each.

    B(t, u) = from_first for t = 0, to_first for t > 0 and u = 0, and bias(t, u) elsewhere.

    The first token stands for the whole text, as [CLS] does in BERT: no position says where it should look.

    Args:
        bias: the term of places, shape (..., n, n), floating, for instance (heads, n, n).
        from_first: for the row, shape (...) without the last two axes of bias, of its dtype.
        to_first: for the column, likewise.

    Returns:
        Array of the shape and dtype of bias.

    Raises:
        TypeError: the arrays differ in library or dtype, or are not floating.
        ValueError: bias is not square in its last two axes, or another array has not the shape of the rest.

    >>> import numpy as np
    >>> untie_first(np.ones((3, 3)), np.array(7.0), np.array(5.0))
    array([[7., 7., 7.],
           [5., 1., 1.],
           [5., 1., 1.]])

    Source: Ke et al. (2021), section 3.2.
    """
    xp = floating(bias=bias, from_first=from_first, to_first=to_first)
    if bias.ndim < 2 or bias.shape[-1] != bias.shape[-2]:
        raise ValueError(f"bias must have shape (..., n, n), got {tuple(bias.shape)}")
    for name, x in (("from_first", from_first), ("to_first", to_first)):
        if tuple(x.shape) != tuple(bias.shape[:-2]):
            raise ValueError(f"{name} must have shape {tuple(bias.shape[:-2])}, got {tuple(x.shape)}")
    places = xp.arange(bias.shape[-1], device=device_of(bias))
    bias = xp.where(places == 0, to_first[..., None, None], bias)
    return xp.where((places == 0)[:, None], from_first[..., None, None], bias)


def _check_pair(query: Array, key: Array) -> None:
    wrong = query.ndim < 2 or key.ndim < 2 or key.shape[-1] != query.shape[-1]
    if wrong or key.shape[:-2] != query.shape[:-2]:
        raise ValueError(
            "query must have shape (..., n_q, d) and key (..., n_k, d) with the same leading axes and d, "
            f"got {tuple(query.shape)} and {tuple(key.shape)}"
        )


def _check_pairs(places: Array, products: Array) -> None:
    """ValueError unless there is a place for each pair of a query and a key."""
    if tuple(places.shape[-2:]) != tuple(products.shape[-2:]):
        raise ValueError(
            "query_positions and key_positions must have one position for each of "
            f"{products.shape[-2]} queries and {products.shape[-1]} keys, got {tuple(places.shape[-2:])}"
        )
