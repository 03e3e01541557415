"""Laws for models of every kind: a row alone and a row among others are the same."""

import pytest
import torch
from architectures import ATTENTION, STATES, built
from grpo_runs import logs
from test_engines import complete, tokens
from transformers import RwkvConfig, RwkvForCausalLM

from core.forward.batches import token_batch, trim
from core.forward.logps import token_logps
from core.rollout import native
from core.rollout.cached import has_key_value_cache
from core.rollout.engines import make_engine
from core.rollout.native.native import NativeEngine
from eval.errors import BadValue

CLOSE = 2e-5
PROMPTS = [[5, 6, 7], [8, 9], [10, 11, 12, 13, 14, 15], [20, 21], [8, 9]]
COMPLETIONS = [[30, 31, 32], [33], [34, 35, 36, 37, 38, 39, 40], [41, 42], [43, 44, 45, 46]]


def alone(model, prompt, completion, temperature=1.0):
    """Log-probabilities by the plain forward pass of one row, without padding."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt + completion]), use_cache=False).logits
    logps = (logits[0, len(prompt) - 1 : -1].float() / temperature).log_softmax(-1)
    return logps.gather(-1, torch.tensor(completion).unsqueeze(-1)).squeeze(-1)


def wider(batch):
    """The same rows with more padding on both sides."""

    def more(rows, before, behind):
        return torch.nn.functional.pad(rows, (before, behind))

    return {
        key: more(rows, *((3, 0) if key.startswith("prompt") else (0, 4)))
        for key, rows in batch.items()
    }


@pytest.mark.parametrize("name", [*ATTENTION, *STATES])
def test_training_reads_a_row_as_it_is_alone(name):
    """Whatever padding is around it, and whatever rows are beside it."""
    model = built(name)
    expected = [alone(model, *pair) for pair in zip(PROMPTS, COMPLETIONS, strict=True)]
    batch = token_batch(PROMPTS, COMPLETIONS, 0, None)
    some = {key: rows[1:3] for key, rows in batch.items()}
    cases = [(batch, 0), (wider(batch), 0), (trim(some), 1)]
    for rows, first in cases:
        with torch.no_grad():
            logps = token_logps(model, rows, 1.0).logps
        for row, count, truth in zip(
            logps, rows["completion_mask"].sum(1), expected[first:], strict=False
        ):
            assert (row[:count] - truth).abs().max() < CLOSE
            assert not row[count:].any()


# transformers 5.23: its own steps and its own forward pass differ
STEPS = {"nemotron_h": 0.02, "recurrent_gemma": 0.02}


@pytest.mark.parametrize("name", [*ATTENTION, *STATES])
def test_a_completion_is_that_of_its_prompt_alone(name):
    """In groups, beside other prompts and where rows take the places of others."""
    model = built(name)
    assert has_key_value_cache(model) is (name in ATTENTION)
    options = {"max_tokens": 4, "temperature": 1.2, "ends": frozenset(range(1, 9))}
    prompts = [prompt for prompt in PROMPTS for _ in range(2)]
    whole = complete(NativeEngine(model, rows=4), prompts, **options)
    for number in (0, 5, 9):
        (one,) = complete(NativeEngine(model), [prompts[number]], [number], **options)
        assert one.tokens == whole[number].tokens
        scaled = alone(model, prompts[number], one.tokens, temperature=1.2)
        found = torch.tensor(whole[number].logps)
        torch.testing.assert_close(found, scaled, rtol=0, atol=STEPS.get(name, 1e-4))


@pytest.mark.parametrize("name", STATES)
def test_what_keeps_other_states_decodes_as_generate_does(name):
    """Greedily, with a penalty and with a stop function."""
    model = built(name)
    options = {"max_tokens": 6, "temperature": 0.0, "repetition_penalty": 1.3}
    prompts = [*PROMPTS, PROMPTS[0]]
    theirs = [complete(make_engine("hf", model, 0), [p], **options)[0] for p in prompts]
    ours = complete(NativeEngine(model), prompts, **options)
    assert tokens(ours) == tokens(theirs)
    wanted = ours[0].tokens[1]
    stopped = complete(NativeEngine(model), prompts, stop=lambda row: row[-1] == wanted, **options)
    assert len(stopped[0].tokens) <= 2
    assert stopped[0].finish == "stop"
    for cut, free in zip(stopped, ours, strict=True):
        assert cut.tokens == free.tokens[: len(cut.tokens)]


@pytest.mark.parametrize("engine", ["native", "equal", "hf"])
def test_a_model_whose_rows_mix_is_refused(engine, make_grpo):
    config = RwkvConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, attention_hidden_size=32
    )
    with pytest.raises(BadValue, match="RWKV is not supported"):
        make_grpo(model=RwkvForCausalLM(config), rollout_engine=engine)


def test_a_slower_way_is_said_when_the_trainer_is_made(make_grpo, caplog):
    name = "native rollout engine: MambaForCausalLM keeps other states than keys and values"
    native.logger.warning_once.cache_clear()
    trainer = make_grpo(model=built("mamba"), beta=0.04)
    assert [r.message[: len(name)] for r in caplog.records] == [name]
    trainer.train()
    assert len([r for r in caplog.records if r.message.startswith(name)]) == 1
    assert logs(trainer, "kl")[0] == 0.0
