"""Our sampler as a model of lm-eval: `--model repro --model_args pretrained=pocket-instruct`."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import torch
from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.models.utils import postprocess_generated_text
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from torch import nn
from tqdm import tqdm

from core.bounded_templates import Tokenizer, apply_template
from core.lm_eval.requests import continuation_logps, decoding_options, endings
from core.models.load import load_policy, load_tokenizer
from core.rollout.engine import ROWS, Sampling
from core.rollout.native.native import NativeEngine
from core.rollout.seeds import seed_of
from core.rollout.stops import end_tokens
from core.stages.training import prepare_torch
from eval.errors import BadValue

Tokens = list[int]
UNBOUNDED = 2048  # context length of a model that states none, as in lm-eval


class ReproLM(TemplateLM):
    """A policy (a folder, a hub id or a shipped name) decoded by our loop.

    `batch_size` is the number of completions that are decoded at a time; None or "auto" fill the
    free memory of a GPU. lm-eval's command line passes 1 by default. Draws depend on `seed` alone.
    """

    def __init__(
        self,
        pretrained: str,
        *,
        batch_size: int | str | None = None,
        device: str | None = None,
        dtype: str = "float32",
        max_gen_toks: int = 256,
        seed: int = 0,
        max_batch_size: int | None = None,
    ):
        super().__init__()
        del max_batch_size  # of lm-eval's automatic batch size, which we do not need
        prepare_torch(None)
        cuda = torch.cuda.is_available()
        self._device = torch.device(device if device and cuda else "cuda" if cuda else "cpu")
        self.model = load_policy(pretrained, dtype).eval()
        cast(nn.Module, self.model).to(self._device)
        self.tokenizer: Tokenizer = load_tokenizer(pretrained)
        self.name = pretrained
        self.rows = None if batch_size in (None, "auto") else int(batch_size)
        self.max_gen_toks = max_gen_toks
        config = self.model.config.get_text_config()
        self.max_length = int(getattr(config, "max_position_embeddings", UNBOUNDED))
        self.seed = seed
        self.templated = False

    @property
    def eot_token_id(self) -> int:
        """The token that ends a text."""
        return self.tokenizer.eos_token_id

    @property
    def prefix_token_id(self) -> int:
        """The token before a text without context."""
        bos = self.tokenizer.bos_token_id
        return self.eot_token_id if bos is None else bos

    @property
    def tokenizer_name(self) -> str:
        """The model's part of the name of lm-eval's request cache."""
        return self.name.replace("/", "__")

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        """Format the turns with the chat template, which from then on adds all special tokens."""
        self.templated = True
        return apply_template(
            self.tokenizer,
            chat_history,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=not add_generation_prompt,
        )

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **_: object
    ) -> Tokens:
        """Return token ids; by default special tokens are added unless the text has them."""
        if add_special_tokens is None:
            bos = self.tokenizer.bos_token
            add_special_tokens = not (self.templated or (bos and string.startswith(bos)))
        return self.tokenizer(string, add_special_tokens=add_special_tokens)["input_ids"]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Return one completion for each request, cut before its first stop string."""
        calls: list[Any] = [request.args for request in requests]  # Any: (context, settings)
        answers = [""] * len(requests)
        groups: dict[str, list[int]] = defaultdict(list)
        for index, (_, settings) in enumerate(calls):
            groups[json.dumps(settings, sort_keys=True)].append(index)
        with tqdm(total=len(requests), disable=disable_tqdm, desc="repro: generate") as bar:
            for indices in groups.values():
                prompts = [calls[i][0] for i in indices]
                for place, text in self.generate(prompts, calls[indices[0]][1]):
                    answers[indices[place]] = text
                    self.cache_hook.add_partial("generate_until", calls[indices[place]], text)
                    bar.update()
        return answers

    def generate(
        self, prompts: Sequence[str], settings: Mapping[str, Any]
    ) -> Iterator[tuple[int, str]]:
        """Yield (index, completion) of each prompt, in the order in which completions finish.

        Raises:
            BadValue: our decoding loop lacks a setting, or the context has no room for a prompt.
        """
        options = decoding_options(settings, self.max_gen_toks)
        room = self.max_length - options["max_tokens"]
        if room < 1:
            raise BadValue(
                f"max_gen_toks={options['max_tokens']}: {self.name} holds {self.max_length} "
                "tokens, prompt included; ask for fewer"
            )
        until = options.pop("until")
        ends, stop = endings(self.tokenizer, until)
        ids = [self.tok_encode(prompt)[-room:] for prompt in prompts]
        repeats = Counter[tuple[int, ...]]()
        seeds: list[int] = []
        for row in map(tuple, ids):
            seeds.append(seed_of(self.seed, repeats[row], row))
            repeats[row] += 1
        ends.update(end_tokens(self.model, self.tokenizer))
        sampling = Sampling(ends=frozenset(ends), stop=stop, **options)
        for place, completion in NativeEngine(self.model, self.rows).sample(ids, sampling, seeds):
            text = self.tokenizer.decode(completion.tokens, skip_special_tokens=True)
            yield place, postprocess_generated_text(text, until, None)

    def _loglikelihood_tokens(
        self,
        requests: Any,  # Any: a list of (texts or None, context ids, continuation ids)
        disable_tqdm: bool = False,
        **_: object,
    ) -> list[tuple[float, bool]]:
        """Return the log-probability of each continuation, and whether it is greedy."""
        rows = [
            ((context or [self.prefix_token_id]) + continuation)[-self.max_length - 1 :]
            for _, context, continuation in requests
        ]
        order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        answers = [(0.0, True)] * len(rows)
        with tqdm(total=len(rows), disable=disable_tqdm, desc="repro: loglikelihood") as bar:
            batch_size = self.rows or ROWS
            for start in range(0, len(order), batch_size):
                places = order[start : start + batch_size]
                lengths = [len(requests[place][2]) for place in places]
                batch_answers = continuation_logps(
                    self.model, [rows[p] for p in places], lengths, self.tokenizer.pad_token_id
                )
                for place, answer in zip(places, batch_answers, strict=True):
                    answers[place] = answer
                    if (texts := requests[place][0]) is not None:
                        self.cache_hook.add_partial("loglikelihood", texts, answer)
                    bar.update()
        return answers

    def loglikelihood_rolling(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[float]:
        """Return the log-probability of each text, in windows if it exceeds the context."""
        windows = [
            (None, *make_disjoint_window(window), place)
            for place, request in enumerate(requests)
            for window in get_rolling_token_windows(
                token_list=self.tok_encode(request.args[0]),
                prefix_token=self.prefix_token_id,
                max_seq_len=self.max_length,
                context_len=1,
            )
        ]
        answers = self._loglikelihood_tokens([w[:3] for w in windows], disable_tqdm=disable_tqdm)
        totals = [0.0] * len(requests)
        for (*_, place), (logp, _) in zip(windows, answers, strict=True):
            totals[place] += logp
        for request, total in zip(requests, totals, strict=True):
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, total)
        return totals


register_model("repro")(ReproLM)  # as a decorator it would hide the class's type
