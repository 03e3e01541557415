"""lm-eval's requests in our words: settings of generation, stop strings, log-probabilities."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from lm_eval.models.utils import normalize_gen_kwargs
from transformers import PreTrainedModel

from core.rollout.cached import left_pad
from core.rollout.stops import Stop, stop_function
from eval.errors import BadValue

DECODED = {"temperature", "top_k", "top_p", "min_p", "repetition_penalty"}
Tokens = list[int]


def decoding_options(settings: Mapping[str, Any], max_gen_toks: int) -> dict[str, Any]:
    """lm-eval's generation settings as those of our decoding loop, and `until`.

    Raises:
        BadValue: a setting that our loop does not have.
    """
    found: dict[str, Any] = dict(normalize_gen_kwargs(dict(settings), max_gen_toks))
    options = {"until": found.pop("until"), "max_tokens": found.pop("max_gen_toks")}
    found.setdefault("temperature", 1.0 if found["do_sample"] else 0.0)
    del found["do_sample"]
    unknown = found.keys() - DECODED
    if unknown:
        raise BadValue(
            f"generation setting {min(unknown)}={found[min(unknown)]!r}: `repro` has "
            f"{', '.join(sorted(DECODED))}, do_sample, until and max_gen_toks"
        )
    return options | found


def endings(tokenizer: Any, until: Sequence[str]) -> tuple[set[int], Stop | None]:
    """Tokens that end a completion, and whether its last tokens spell another stop string.

    A stop string that is a special token is never part of the text, so it ends the completion as a
    token; the second is None if there is no other string.
    """
    special = {string for string in until if string in tokenizer.all_special_tokens}
    ids = {tokenizer.eos_token_id, *tokenizer.convert_tokens_to_ids(sorted(special))}
    return ids, stop_function(tokenizer, [string for string in until if string not in special])


@torch.no_grad()
def continuation_logps(
    model: PreTrainedModel, rows: Sequence[Tokens], lengths: Sequence[int], pad: int
) -> list[tuple[float, bool]]:
    """Log-probability of the last `lengths` tokens of each row, and whether all are most likely."""
    ids, mask = left_pad([row[:-1] for row in rows], model.device, pad)
    logits = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
        logits_to_keep=max(lengths),
        use_cache=False,
    ).logits
    answers: list[tuple[float, bool]] = []
    for row, length, own in zip(rows, lengths, logits.float().log_softmax(-1), strict=True):
        target = torch.tensor(row[len(row) - length :], device=own.device)
        tail = own[len(own) - length :]
        logps = tail.gather(-1, target.unsqueeze(-1))
        answers.append((float(logps.sum()), bool((tail.argmax(-1) == target).all())))
    return answers
