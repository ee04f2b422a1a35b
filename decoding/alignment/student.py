"""The student: some of the target's own layers under the target's embeddings, with a head over frequent tokens."""

import json
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from decoding.alignment.data import FORCED, Conversations
from decoding.joined import EMBEDDINGS, HEAD_IDS, HEAD_MAP, LENDER_KEY, RestrictedHead


def make_student(target: PreTrainedModel, layers: Sequence[int], head_ids: Tensor) -> LlamaForCausalLM:
    """A model that starts as `layers` of the target; embeddings and head are the target's and stay frozen."""
    config = deepcopy(target.config)
    config.num_hidden_layers = len(layers)
    config.tie_word_embeddings = False  # the head is a part of the embeddings, not all of them
    student = LlamaForCausalLM(config)
    embeddings = target.get_input_embeddings().weight.detach()
    student.model.embed_tokens.weight = torch.nn.Parameter(embeddings, requires_grad=False)
    for own, source in zip(student.model.layers, layers, strict=True):
        own.load_state_dict(target.model.layers[source].state_dict())
    student.model.norm.load_state_dict(target.model.norm.state_dict())
    student.lm_head = RestrictedHead(head_ids, embeddings)
    return trainable(student)


def frequent_ids(law: Tensor, size: int, always: Iterable[int]) -> Tensor:
    """The `size` tokens to keep in the head: those in `always`, then the most frequent; (size,) ascending.

    Args:
        law: (vocabulary,) how often each token is written.
    """
    ranked = law.double()
    ranked[list(always)] = torch.inf
    return ranked.topk(size).indices.sort().values


def indispensable_ids(tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Specials and single characters or bytes: what any text can be spelled with."""
    vocabulary = tokenizer.get_vocab()
    return set(tokenizer.all_special_ids) | {token_id for token, token_id in vocabulary.items() if len(token) == 1}


def trainable(student: PreTrainedModel) -> PreTrainedModel:
    """The student with all but the embeddings, as input and as head, open to training."""
    student.requires_grad_(True)
    student.get_input_embeddings().requires_grad_(False)
    student.lm_head.among.requires_grad_(False)
    return student


@torch.inference_mode()
def fit_map(student: PreTrainedModel, data: Conversations, ridge: float = 10.0) -> None:
    """Set the head's map to the least-squares map from the student's last hidden states to the target's.

    A closed form: it gives at once what training would first have to find. It asks nothing of the student's own last
    layers, so the student may consist of the target's *first* layers, which are made for one another.
    """
    width = student.config.hidden_size
    gram, cross = torch.zeros(width, width), torch.zeros(width, width)
    for some in torch.arange(len(data)).split(8):
        batch = data.select(some)
        written = batch.writers[:, 1:] != FORCED
        ours = student.model(batch.tokens[:, :-1].to(student.device), use_cache=False).last_hidden_state.cpu()[written]
        gram += ours.T @ ours
        cross += ours.T @ batch.hidden[written].float()
    student.lm_head.map.weight.copy_(torch.linalg.solve(gram + ridge * torch.eye(width), cross).T)


def own_weights(student: PreTrainedModel) -> dict[str, Tensor]:
    """What training changes: layers, last norm and the head's map."""
    own = {name: weight for name, weight in student.model.state_dict().items() if name != EMBEDDINGS}
    return own | {HEAD_MAP: student.lm_head.map.weight.detach()}


def set_own_weights(student: PreTrainedModel, own: dict[str, Tensor]) -> None:
    student.model.load_state_dict(
        {
            EMBEDDINGS: student.get_input_embeddings().weight,
            **{name: weight for name, weight in own.items() if name != HEAD_MAP},
        }
    )
    with torch.no_grad():
        student.lm_head.map.weight.copy_(own[HEAD_MAP])


def export(student: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, lender: str, folder: Path) -> None:
    """Write the student without its borrowed embeddings, in half precision; the files are replaced one by one, whole."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=folder.parent) as name:
        scratch = Path(name)
        tokenizer.save_pretrained(scratch)
        config = student.config.to_dict() | {
            "dtype": "float16",
            LENDER_KEY: lender,
            "architectures": ["LlamaForCausalLM"],
        }
        config.pop("_model_name_or_path", None)
        (scratch / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        weights = {key: weight.detach().half().contiguous().cpu() for key, weight in own_weights(student).items()}
        save_file(
            {**weights, HEAD_IDS: student.lm_head.ids.int().cpu()}, scratch / "model.safetensors", {"format": "pt"}
        )
        for file in scratch.iterdir():
            Path(shutil.copyfile(file, folder / f"{file.name}.part")).replace(folder / file.name)
