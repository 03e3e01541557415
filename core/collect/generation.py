"""Generation of completions from prompts: chat template, sampling, and text for rewards."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, cast

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from core.bounded_templates import Tokenizer, apply_template
from core.configs.generation_keywords import as_list, engine_keywords, sampling_settings
from core.configs.rollout import RolloutConfig
from core.data.conversations import Row
from core.forward.logps import evaluating
from core.rewards.completions import Completion
from core.rollout.engine import Engine, Sampling, in_order
from core.rollout.stops import stop_function
from eval.errors import BadValue

RolloutFunction = Callable[[list[Completion], Any], Mapping[str, Any]]  # Any: trainer; user's own
REQUIRED = ("prompt_ids", "completion_ids", "logprobs")


@dataclass(frozen=True, kw_only=True)
class Generated:
    """Completions of rows, one each: its tokens, and its text in the format of the prompt.

    Attributes:
        prompt_ids: Tokens of each prompt.
        completion_ids: Tokens of each completion.
        completions: Text or messages of each completion.
        logps: Log-probabilities with which the tokens were sampled, None if unknown.
        support: Tokens that truncation left when each token was sampled, None if not recorded.
        columns: Further fields of a rollout function, passed to the rewards.
        trained: 0 on completion tokens that an environment wrote, 1 on the others.
    """

    prompt_ids: Sequence[Sequence[int]]
    completion_ids: Sequence[Sequence[int]]
    completions: list[Completion]
    logps: Sequence[Sequence[float | None]] | None = None
    support: Sequence[list[bytes]] | None = None
    columns: dict[str, object] = field(default_factory=dict[str, object])
    trained: Sequence[Sequence[int]] | None = None

    @property
    def lengths(self) -> list[int]:
        """Number of tokens that the policy itself wrote, per completion."""
        return [
            sum(row) if self.trained else len(row) for row in self.trained or self.completion_ids
        ]

    def are_truncated(self, ends: Sequence[int]) -> list[bool]:
        """Return for each completion whether it does not end with one of the tokens `ends`."""
        return [not ids or ids[-1] not in ends for ids in self.completion_ids]


def is_conversation(prompt: Completion) -> bool:
    """Return whether a prompt is a list of messages, not text."""
    return not isinstance(prompt, str)


def pad_token_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """Return the id of the padding token."""
    return cast(int, tokenizer.pad_token_id)


def tokenize_prompts(
    tokenizer: Tokenizer, prompts: Sequence[Completion], template: Mapping[str, object]
) -> list[list[int]]:
    """Return token ids of prompts; messages go through the chat template with these keywords.

    Equal prompts in a row, those of a group, are encoded once.
    """
    groups = [(prompt, len(list(equal))) for prompt, equal in groupby(prompts)]
    encoded = encode_prompts(tokenizer, [prompt for prompt, _ in groups], template)
    counted = zip(encoded, groups, strict=True)
    return [list(ids) for ids, (_, count) in counted for _ in range(count)]


def encode_prompts(
    tokenizer: Tokenizer, prompts: list[Completion], template: Mapping[str, object]
) -> list[list[int]]:
    """Return token ids of prompts, see `tokenize_prompts`; each prompt is encoded.

    Raises:
        BadValue: a prompt is neither a text nor messages.
    """
    for prompt in prompts:
        if not isinstance(prompt, str | list | tuple) or prompt in ([], ()):
            raise BadValue(f"a prompt is {prompt!r:.60}: expected a text or a list of messages")
    if not is_conversation(prompts[0]):
        return tokenizer(text=prompts)["input_ids"]
    return apply_template(
        tokenizer,
        prompts,
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        **template,
    )["input_ids"]


def decode_completions(
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[Completion],
    completion_ids: Sequence[Sequence[int]],
) -> list[Completion]:
    """Decode completions without special tokens.

    The first prompt decides the form of all completions: if it is a conversation, each completion
    is a list of one assistant message, otherwise a string.

    Args:
        tokenizer: the tokenizer of the model.
        prompts: at least one prompt.
        completion_ids: token ids of each completion.
    """
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
    """Sample one completion for each prompt, each with its own seed.

    Of a prompt with more than `args.longest_prompt` tokens, the last ones are kept.

    Raises:
        BadValue: a prompt is empty.
    """
    whole_ids = tokenize_prompts(tokenizer, prompts, args.template)
    prompt_ids = [ids[-(args.longest_prompt or len(ids)) :] for ids in whole_ids]
    if not all(prompt_ids):
        raise BadValue("a prompt has no tokens: take the rows with an empty prompt out")
    sampling = sampling_options(args, tokenizer, eos_token_ids)
    with evaluating(model):
        rows = in_order(engine.sample(prompt_ids, sampling, seeds), len(prompts))
    completion_ids = [row.tokens for row in rows]
    return Generated(
        prompt_ids=prompt_ids,
        completion_ids=completion_ids,
        completions=decode_completions(tokenizer, prompts, completion_ids),
        logps=[row.logps for row in rows],
        support=[row.support or [] for row in rows] if args.keep_sampling_mask else None,
    )


def sampling_options(args: RolloutConfig, tokenizer: Tokenizer, ends: Sequence[int]) -> Sampling:
    """Return the options of decoding from the settings and the keywords of generation."""
    settings = sampling_settings(args)
    stops = as_list(settings.get("stop_strings") or [])
    return Sampling(
        max_tokens=int(settings["max_new_tokens"]),
        ends=frozenset(as_list(settings.get("eos_token_id") or list(ends))),
        temperature=settings["temperature"],
        top_k=int(settings["top_k"]),
        top_p=settings["top_p"],
        min_p=settings["min_p"],
        repetition_penalty=settings["repetition_penalty"],
        keeps_support=args.keep_sampling_mask,
        stop=stop_function(tokenizer, stops),
        keywords=engine_keywords(args.rollout_engine, args.generation_keywords),
    )


def call_rollout(
    rollout: RolloutFunction,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[Completion],
    trainer: object,
) -> Generated:
    """Call a user's rollout function and check what it returns.

    Raises:
        BadValue: a key is missing, there is not one completion per prompt, or a prompt has no
            tokens.
    """
    output = dict(rollout(deepcopy(list(prompts)), trainer))
    missing = [key for key in REQUIRED if key not in output]
    if missing:
        raise BadValue(
            f"rollout_func must return keys {missing} in its output dict: found {sorted(output)}"
        )
    prompt_ids, completion_ids, logps = (output.pop(key) for key in REQUIRED)
    for key, rows in (("prompt_ids", prompt_ids), ("completion_ids", completion_ids)):
        if len(rows) != len(prompts):
            raise BadValue(
                f"rollout_func returned {len(rows)} {key} for {len(prompts)} prompts: expected one "
                "per prompt, which already repeat for each completion of a group"
            )
    if not all(len(ids) for ids in prompt_ids):
        raise BadValue(
            "rollout_func returned empty prompt_ids: expected at least one token, such as the "
            "tokenizer's bos_token"
        )
    return Generated(
        prompt_ids=prompt_ids,
        completion_ids=completion_ids,
        completions=decode_completions(tokenizer, prompts, completion_ids),
        logps=logps,
        trained=output.pop("env_mask", None),
        columns=output,
    )


def extend_rows(rows: Sequence[Row], columns: Mapping[str, object]) -> list[Row]:
    """Add the further fields of a rollout function to the dataset rows."""
    return [
        {**row, **{k: v[i] if isinstance(v, list) else v for k, v in columns.items()}}
        for i, row in enumerate(rows)
    ]
