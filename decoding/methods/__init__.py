"""The methods: one file each, one generator each, from a `Run` to its steps.

To add a method, write its generator in a file of its own and enter it below.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from decoding.methods.mtad import mtad
from decoding.methods.mtjd import mtjd
from decoding.methods.single_token import single_token
from decoding.methods.speculative import speculative
from decoding.methods.typical import typical
from decoding.run import Run
from decoding.settings import DecodingSettings
from decoding.trace import Step


@dataclass(frozen=True)
class Method:
    """A decoding method.

    Attributes:
        title: what people call it.
        steps: runs it to the end, one step at a time.
        drafts: whether it needs a draft model.
        lossless: whether its texts follow exactly the target's law.
        uses: the settings it reads, beside those of every method.
        trees: what it scores several continuations in one pass for, by the model that does ("target" or "draft").
    """

    title: str
    steps: Callable[[Run], Iterator[Step]]
    drafts: bool
    lossless: bool
    uses: tuple[str, ...] = ()
    trees: Callable[[DecodingSettings], Mapping[str, str]] = lambda settings: {}


def _mtad_trees(settings: DecodingSettings) -> dict[str, str]:
    beams = {"draft": "drafting with beams"}
    return beams | {"target": "tree verification"} if settings.tree_verification else beams


METHODS = {
    "single_token": Method("Single-token sampling", single_token, drafts=False, lossless=True),
    "speculative": Method("Speculative decoding", speculative, drafts=True, lossless=True, uses=("draft_length",)),
    "mtad": Method(
        "MTAD",
        mtad,
        drafts=True,
        lossless=False,
        uses=("draft_length", "beam_width", "threshold", "draft_search", "tree_verification"),
        trees=_mtad_trees,
    ),
    "mtjd": Method(
        "MTJD, exact",
        mtjd,
        drafts=False,
        lossless=False,
        uses=("draft_length", "best_blocks", "search_budget"),
        trees=lambda settings: {"target": "an exact search"},
    ),
    "typical": Method("Typical acceptance", typical, drafts=True, lossless=False, uses=("draft_length", "threshold")),
}
