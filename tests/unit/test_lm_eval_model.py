"""Our sampler as a model of lm-eval against lm-eval's own `hf` on the same random Llama."""

import pytest
from architectures import built
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
from lm_eval.models.huggingface import HFLM

from core.lm_eval.model import ReproLM
from core.lm_eval.requests import endings
from eval.errors import BadValue

TEXTS = ("3+4=7", "a b c", "the answer is 12.", "x", "if 2*x = 10 then x = 5", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, build_llama, tiny_tokenizer):
    path = tmp_path_factory.mktemp("lm") / "tiny"
    build_llama(seed=3, max_position_embeddings=48).save_pretrained(path)
    tiny_tokenizer.save_pretrained(path)
    return str(path)


@pytest.fixture(scope="module")
def ours(folder):
    return ReproLM(folder, batch_size=3)


@pytest.fixture(scope="module")
def theirs(folder):
    return HFLM(pretrained=folder, batch_size=3, device="cpu", dtype="float32")


def ask(kind, *arguments):
    return [Instance(kind, {}, a, 0) for a in arguments]


def generated(lm, prompts, **settings):
    whole = {"until": [], "max_gen_toks": 20} | settings
    return lm.generate_until(
        ask("generate_until", *((p, whole) for p in prompts)), disable_tqdm=True
    )


def test_the_registry_knows_it():
    assert get_model("repro") is ReproLM


def test_loglikelihoods_equal_theirs(ours, theirs):
    pairs = [(a, b) for a in TEXTS for b in TEXTS if b]
    pairs += [("ab ", "cd"), ("y" * 60, "z" * 9)]  # a space at the seam; longer than the context
    asked = ask("loglikelihood", *pairs)
    mine, peer = (lm.loglikelihood(asked, disable_tqdm=True) for lm in (ours, theirs))
    assert [row[0] for row in mine] == pytest.approx([row[0] for row in peer], abs=1e-4)
    assert [row[1] for row in mine] == [row[1] for row in peer]


def test_a_model_of_other_states_gives_what_theirs_gives(tiny_tokenizer, tmp_path):
    built("mamba").save_pretrained(tmp_path)
    tiny_tokenizer.save_pretrained(tmp_path)
    mine, peer = ReproLM(str(tmp_path)), HFLM(pretrained=str(tmp_path), device="cpu")
    asked = ask("loglikelihood", *((a, b) for a in TEXTS[:3] for b in TEXTS[:2]))
    found, expected = (lm.loglikelihood(asked, disable_tqdm=True) for lm in (mine, peer))
    assert [row[0] for row in found] == pytest.approx([row[0] for row in expected], abs=1e-4)
    assert generated(mine, TEXTS[:3]) == generated(peer, TEXTS[:3])


def test_the_greedy_continuation_is_known_as_such(ours):
    (greedy,) = generated(ours, ["3+4="], max_gen_toks=6)
    other = "z" if greedy[0] != "z" else "y"
    asked = ask("loglikelihood", ("3+4=", greedy), ("3+4=", other))
    assert [row[1] for row in ours.loglikelihood(asked, disable_tqdm=True)] == [True, False]


def test_rolling_loglikelihoods_equal_theirs_and_split_into_tokens(ours, theirs):
    long = "".join(chr(97 + i * i % 23) for i in range(150))  # the context holds 48
    texts = ["3+4=7", long, "x"]
    asked = ask("loglikelihood_rolling", *((t,) for t in texts))
    mine, peer = (lm.loglikelihood_rolling(asked, disable_tqdm=True) for lm in (ours, theirs))
    assert mine == pytest.approx(peer, abs=1e-3)
    parts = ask("loglikelihood", *(("<eos>" + "3+4=7"[:i], "3+4=7"[i]) for i in range(5)))
    whole = sum(logp for logp, _ in ours.loglikelihood(parts, disable_tqdm=True))
    assert mine[0] == pytest.approx(whole, abs=1e-4)


@pytest.mark.parametrize("until", [[], ["e"], ["zz", "a", "1"], "q"])
def test_greedy_outputs_equal_theirs_with_any_stop_strings(ours, theirs, until):
    prompts = [text for text in TEXTS if text]
    mine, peer = (generated(lm, prompts, until=until) for lm in (ours, theirs))
    assert mine == peer


def test_a_stop_string_over_several_tokens_ends_the_text_and_the_decoding(ours):
    free = generated(ours, TEXTS[:3])
    stop = free[0][4:7]
    cut = generated(ours, TEXTS[:3], until=[stop])
    assert cut == [text.split(stop)[0] for text in free]
    steps = []
    hook = ours.model.register_forward_pre_hook(lambda *_: steps.append(1))
    try:
        assert generated(ours, TEXTS[:1], until=[stop]) == cut[:1]
    finally:
        hook.remove()
    assert len(steps) == free[0].index(stop) + len(stop)


def test_a_completion_ends_at_every_token_that_the_model_declares(ours, theirs, monkeypatch):
    """As with a chat model that declares the end of a turn beside the tokenizer's end of text."""
    free = generated(ours, TEXTS[:3])
    end = ours.tokenizer.convert_tokens_to_ids(free[0][1])
    for lm in (ours, theirs):
        declared = lm.model.generation_config
        monkeypatch.setattr(declared, "eos_token_id", [ours.tokenizer.eos_token_id, end])
    cut = generated(ours, TEXTS[:3])
    assert cut == generated(theirs, TEXTS[:3])
    assert len(cut[0]) <= 2 < len(free[0])


def test_special_tokens_end_a_completion_as_tokens_and_other_strings_by_their_text(tiny_tokenizer):
    user = tiny_tokenizer.convert_tokens_to_ids("<user>")
    ids, stop = endings(tiny_tokenizer, ["<user>", "ser", "a b", ""])
    assert ids == {tiny_tokenizer.eos_token_id, user}
    assert stop is not None
    encode = tiny_tokenizer.encode
    assert [stop(encode(text)) for text in ("xa b", "xa", "user", "<user>", "a<user> b")] == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert endings(tiny_tokenizer, [])[1] is None


def test_answers_come_in_the_order_of_the_requests_whatever_their_settings(ours):
    settings = [{"until": [], "max_gen_toks": n} for n in (3, 9, 3, 9, 5)]
    mixed = ask("generate_until", *zip(TEXTS, settings, strict=False))
    found = ours.generate_until(mixed, disable_tqdm=True)
    alone = [generated(ours, [p], **s)[0] for p, s in zip(TEXTS, settings, strict=False)]
    assert found == alone


def test_draws_depend_on_the_seed_alone(folder):
    sampled = {"do_sample": True, "temperature": 1.0, "top_p": 0.95}
    one, two, other = (
        generated(ReproLM(folder, seed=seed), TEXTS[:4], **sampled) for seed in (0, 0, 1)
    )
    assert one == two
    assert one != other


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_beams": 4}, "num_beams=4"),
        ({"max_gen_toks": 48}, "max_gen_toks=48"),
    ],
)
def test_what_cannot_be_honoured_is_refused(ours, settings, message):
    with pytest.raises(BadValue, match=message):
        generated(ours, ["a"], **settings)
