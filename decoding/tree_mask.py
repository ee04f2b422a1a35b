"""Whether a model lets several continuations of a text share one pass: it must obey a mask, and positions, of our own."""

from weakref import WeakKeyDictionary

from torch import Tensor

from decoding.context import TRUNK
from decoding.language_model import LanguageModel, UnsupportedModel

SIBLINGS = 6  # nodes that must not be seen by the one that is looked at
ROUNDING = 1e-5  # of a total variation
LARGEST_SHARE = 0.1  # of what seeing them would change: more is not rounding, in half precision either

_known: WeakKeyDictionary[LanguageModel, bool] = WeakKeyDictionary()


def require_tree_mask(model: LanguageModel, role: str, purpose: str) -> None:
    """Refuse a model that cannot score a tree in one pass; a model is tried once.

    Raises:
        UnsupportedModel: it cannot; the message names it, its `role` in the pair, and `purpose`, what needs the tree.
    """
    if model not in _known:
        _known[model] = takes_tree_mask(model)
    if not _known[model]:
        raise UnsupportedModel(
            f"'{model.source}' is a {model.model.config.model_type} model: it takes no attention mask of a tree, which "
            f"{purpose} needs. Choose another {role}, or do without {purpose}."
        )


def takes_tree_mask(model: LanguageModel) -> bool:
    """Whether a node among siblings has the law that it has alone, rather than the one it has behind them."""
    first, second, *others = (i % model.vocabulary for i in range(1, SIBLINGS + 3))
    among, alone, behind = (model.open() for _ in range(3))
    try:
        among.feed([first])
        seen = among.branch([*others, second], [TRUNK] * (len(others) + 1))[-1].exp()
        expected = alone.feed([first, second])[0].exp()
        confused = behind.feed([first, *others, second])[0].exp()
    except (RuntimeError, TypeError, ValueError):  # what models say to arguments they do not know
        return False
    return _distance(seen, expected) <= max(ROUNDING, LARGEST_SHARE * _distance(confused, expected))


def _distance(law: Tensor, other: Tensor) -> float:
    """Total variation."""
    return float((law - other).abs().sum() / 2)
