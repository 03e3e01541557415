"""From prompts to completions: chat template, sampling, and the text that rewards see."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from core.bounded_templates import apply_template
from core.configs.generation_keywords import listed, passed_on, sampling_settings
from core.configs.rollout import RolloutConfig
from core.forward.logps import evaluating
from core.rewards.completions import Completion
from core.rollout.engine import Engine, Sampling, in_order
from core.rollout.stops import stop_function
from eval.errors import BadValue

RolloutFunction = Callable[[list[Completion], Any], Mapping[str, Any]]  # Any: the trainer
REQUIRED = ("prompt_ids", "completion_ids", "logprobs")


@dataclass(frozen=True, kw_only=True)
class Generated:
    """One completion per row: its tokens, and its text in the form of the prompt.

    `logps` are the log-probabilities with which the tokens were drawn, None where unknown.
    `support` are the tokens that truncation left where each token was drawn, None where not kept.
    `columns` are further fields of a rollout function, passed on to the rewards; `trained` is 0 on
    completion tokens that an environment wrote.
    """

    prompt_ids: Sequence[Sequence[int]]
    completion_ids: Sequence[Sequence[int]]
    completions: list[Completion]
    logps: Sequence[Sequence[float | None]] | None = None
    support: Sequence[list[bytes]] | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    trained: Sequence[Sequence[int]] | None = None

    @property
    def lengths(self) -> list[int]:
        """Tokens that the policy itself wrote, per completion."""
        return [
            sum(row) if self.trained else len(row) for row in self.trained or self.completion_ids
        ]

    def truncated(self, ends: Sequence[int]) -> list[bool]:
        """Whether each completion stops at something else than one of the tokens `ends`."""
        return [not ids or ids[-1] not in ends for ids in self.completion_ids]


def is_conversation(prompt: Completion) -> bool:
    """Whether a prompt is a list of messages rather than text."""
    return not isinstance(prompt, str)


def pad_token_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the id of the padding token, which every tokenizer in use has."""
    pad: Any = tokenizer.pad_token_id  # Any: typed for every special token at once
    return int(pad)


def tokenize_prompts(
    tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Completion], template: Mapping[str, Any]
) -> list[list[int]]:
    """Token ids of prompts; messages go through the chat template with `template`'s keywords."""
    encoder: Any = tokenizer  # Any: its return type depends on the keywords
    if not is_conversation(prompts[0]):
        return encoder(text=list(prompts))["input_ids"]
    return apply_template(
        encoder,
        list(prompts),
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        **template,
    )["input_ids"]


def completions_of(
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[Completion],
    completion_ids: Sequence[Sequence[int]],
) -> list[Completion]:
    """Text of completions; a message of the assistant where the prompt is a conversation."""
    rows = [list(ids) for ids in completion_ids]
    texts = tokenizer.batch_decode(rows, skip_special_tokens=True)
    if not is_conversation(prompts[0]):
        return list(texts)
    return [[{"role": "assistant", "content": text}] for text in texts]


def sample(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[Completion],
    args: RolloutConfig,
    eos_token_ids: Sequence[int],
    seeds: Sequence[int],
    engine: Engine,
) -> Generated:
    """One completion for each prompt, sampled as `args` says; each has its own seed.

    Raises:
        BadValue: a prompt is empty.
    """
    prompt_ids = tokenize_prompts(tokenizer, prompts, args.template)
    if not all(prompt_ids):
        raise BadValue("a prompt has no tokens: take the rows with an empty prompt out")
    sampling = sampling_of(args, tokenizer, eos_token_ids)
    with evaluating(model):
        rows = in_order(engine.sample(prompt_ids, sampling, seeds), len(prompts))
    completion_ids = [row.tokens for row in rows]
    return Generated(
        prompt_ids=prompt_ids,
        completion_ids=completion_ids,
        completions=completions_of(tokenizer, prompts, completion_ids),
        logps=[row.logps for row in rows],
        support=[row.support or [] for row in rows] if args.keep_sampling_mask else None,
    )


def sampling_of(
    args: RolloutConfig, tokenizer: Any, ends: Sequence[int]
) -> Sampling:  # Any: half typed
    """Return the decoding of completions from the settings and the keywords of generation."""
    drawn = sampling_settings(args)
    stops = listed(drawn.get("stop_strings") or [])
    return Sampling(
        max_tokens=int(drawn["max_new_tokens"]),
        ends=frozenset(listed(drawn.get("eos_token_id") or list(ends))),
        temperature=drawn["temperature"],
        top_k=int(drawn["top_k"]),
        top_p=drawn["top_p"],
        min_p=drawn["min_p"],
        repetition_penalty=drawn["repetition_penalty"],
        keeps_support=args.keep_sampling_mask,
        stop=stop_function(tokenizer, stops),
        keywords=passed_on(args.rollout_engine, args.generation_keywords),
    )


def call_rollout(
    rollout: RolloutFunction,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[Completion],
    trainer: Any,  # Any: handed on to the user's function
) -> Generated:
    """Let a user's function make the completions.

    Raises:
        BadValue: it leaves a key out, returns another number of completions than of prompts, or a
            prompt without tokens.
    """
    output = dict(rollout(deepcopy(list(prompts)), trainer))
    missing = [key for key in REQUIRED if key not in output]
    if missing:
        raise BadValue(f"rollout_func returned no {', '.join(missing)}: found {sorted(output)}")
    prompt_ids, completion_ids, logps = (output.pop(key) for key in REQUIRED)
    for key, rows in (("prompt_ids", prompt_ids), ("completion_ids", completion_ids)):
        if len(rows) != len(prompts):
            raise BadValue(
                f"rollout_func returned {len(rows)} {key} for {len(prompts)} prompts: expected one "
                "per prompt, which already repeat for each completion of a group"
            )
    if not all(len(ids) for ids in prompt_ids):
        raise BadValue(
            "rollout_func returned prompt_ids without a token: begin with the token that begins "
            "every text of this model"
        )
    return Generated(
        prompt_ids=prompt_ids,
        completion_ids=completion_ids,
        completions=completions_of(tokenizer, prompts, completion_ids),
        logps=logps,
        trained=output.pop("env_mask", None),
        columns=output,
    )


def extended_rows(rows: Sequence[dict[str, Any]], columns: Mapping[str, Any]) -> list[dict]:
    """Dataset rows with the further fields of a rollout function."""
    return [
        {**row, **{k: v[i] if isinstance(v, list) else v for k, v in columns.items()}}
        for i, row in enumerate(rows)
    ]
