"""Converts lm-eval's requests: generation settings, stop strings and log-probabilities."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from lm_eval.models.utils import normalize_gen_kwargs
from transformers import PreTrainedModel

from core.bounded_templates import Tokenizer
from core.rollout.cached import left_pad
from core.rollout.stops import Stop, stop_function
from eval.errors import BadValue

DECODED = {"temperature", "top_k", "top_p", "min_p", "repetition_penalty"}
Tokens = list[int]


def decoding_options(settings: Mapping[str, Any], max_gen_toks: int) -> dict[str, Any]:
    """Return lm-eval's generation settings as those of our decoding loop, and `until`.

    Raises:
        BadValue: our decoding loop lacks a setting.
    """
    sampling: dict[str, Any] = dict(normalize_gen_kwargs(dict(settings), max_gen_toks))
    options = {"until": sampling.pop("until"), "max_tokens": sampling.pop("max_gen_toks")}
    sampling.setdefault("temperature", 1.0 if sampling["do_sample"] else 0.0)
    del sampling["do_sample"]
    unknown = sampling.keys() - DECODED
    if unknown:
        raise BadValue(
            f"generation setting {min(unknown)}={sampling[min(unknown)]!r}: `repro` has "
            f"{', '.join(sorted(DECODED))}, do_sample, until and max_gen_toks"
        )
    return options | sampling


def endings(tokenizer: Tokenizer, until: Sequence[str]) -> tuple[set[int], Stop | None]:
    """Return the tokens that end a completion, and the check for the other stop strings.

    A stop string that is a special token is never part of the text, so its token ends the
    completion. The check is None if there is no other stop string.
    """
    special = {string for string in until if string in tokenizer.all_special_tokens}
    ids = {tokenizer.eos_token_id, *tokenizer.convert_tokens_to_ids(sorted(special))}
    return ids, stop_function(tokenizer, [string for string in until if string not in special])


@torch.no_grad()
def continuation_logps(
    model: PreTrainedModel, rows: Sequence[Tokens], lengths: Sequence[int], pad: int
) -> list[tuple[float, bool]]:
    """Return for each row the log-probability of its last tokens, and whether all are argmax.

    Args:
        model: The policy.
        rows: Token ids of each context with its continuation.
        lengths: Number of continuation tokens of each row.
        pad: The padding token.
    """
    ids, mask = left_pad([row[:-1] for row in rows], model.device, pad)
    logits = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
        logits_to_keep=max(lengths),
        use_cache=False,
    ).logits
    answers: list[tuple[float, bool]] = []
    for row, length, log_probs in zip(rows, lengths, logits.float().log_softmax(-1), strict=True):
        target = torch.tensor(row[len(row) - length :], device=log_probs.device)
        tail = log_probs[len(log_probs) - length :]
        logps = tail.gather(-1, target.unsqueeze(-1))
        answers.append((float(logps.sum()), bool((tail.argmax(-1) == target).all())))
    return answers
