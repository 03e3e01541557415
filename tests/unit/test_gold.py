"""GOLD: texts that a teacher reads in tokens of its own, and the loss of groups of tokens."""

import copy

import pytest
import torch
from datasets import Dataset
from grpo_runs import double, logs, weights
from hypothesis import given
from hypothesis import strategies as st
from teacher_runs import QUIET, SINGLE, SPLITS, by_hand, sums
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import core
from core.collect.generation import Generated
from core.distillation.aligned_text import BYTES, Reader, token_texts
from core.forward import micro_pieces
from core.losses.divergence import divergence
from core.losses.transport import merged, sorted_l1
from core.models.load import load_policy, load_tokenizer
from eval.errors import BadValue

CHARACTERS = [*BYTES]  # a token a byte
MERGES = [("1", "2"), ("3", "4"), ("12", "34"), ("5", "6"), ("Ã", "©")]  # the last is one letter
ULD = {"use_uld_loss": True, "lmbda": 1.0}


def byte_level(*merges, begins=False, decoder=None, prefix=False):
    """A byte-level tokenizer with an end token, with merges, and perhaps with a beginning token."""
    tokens = ["<b>", "<e>", *CHARACTERS, *("".join(pair) for pair in merges)]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, [*merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=False)
    tokenizer.decoder = decoder or decoders.ByteLevel()
    tokenizer.add_special_tokens(["<b>", "<e>"])
    if begins:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<b> $A", special_tokens=[("<b>", 0)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<b>" if begins else None,
        eos_token="<e>",
        pad_token="<e>",
        clean_up_tokenization_spaces=False,
    )


PLAIN, PAIRS = byte_level(), byte_level(*MERGES)


def reader(student=PAIRS, teacher=PLAIN, *, by_text=True, ends=(False, False)):
    return Reader(student, teacher, [student.eos_token_id], by_text, ends)


def texts_of(tokenizer, ids, groups):
    texts = token_texts(tokenizer)
    return [b"".join(texts[ids[place]] for place in group) for group in groups]


@given(st.text(max_size=12))
def test_tokens_have_the_bytes_of_the_text(text):
    for tokenizer in (PAIRS, load_tokenizer("pocket-base")):
        texts, ids = token_texts(tokenizer), tokenizer(text, add_special_tokens=False)["input_ids"]
        assert b"".join(texts[token] for token in ids) == text.encode()
        assert tokenizer.eos_token_id not in texts


@given(st.text(alphabet="123456é中 ", min_size=1, max_size=12))
def test_groups_of_both_sides_have_one_text(text):
    for sides in ((PAIRS, PLAIN), (PLAIN, PAIRS)):
        ids = [*sides[0](text)["input_ids"], sides[0].eos_token_id]
        found = reader(*sides).read([40], ids)
        own, other = (
            texts_of(sides[0], ids, found.own),
            texts_of(sides[1], found.answer, found.other),
        )
        assert own == other
        assert b"".join(own) == text.encode()


def test_groups_end_at_one_byte_where_a_character_is_cut():
    """The student has a token for each byte of a Chinese character, the teacher one for two."""
    character = "中".encode()
    first, second, third = (next(c for c, b in BYTES.items() if b == byte) for byte in character)
    teacher = byte_level((first, second))
    ids = PLAIN("1中2")["input_ids"]
    found = reader(PLAIN, teacher).read([40], ids)
    assert found.own == [[0], [1, 2], [3], [4]]
    assert found.other == [[0], [1], [2], [3]]
    other = byte_level((second, third))
    found = reader(teacher, other).read([40], teacher("1中2")["input_ids"])
    assert found.own == found.other == [[0], [1, 2], [3]]
    cut = reader(PLAIN, teacher).read([40], ids[:3])  # the last character is no UTF-8
    assert cut.answer == teacher("1")["input_ids"]
    assert cut.own == cut.other == [[0]]


def test_beginning_and_end_tokens_are_those_of_each_side():
    begun = byte_level(begins=True)
    prompt, answer = PLAIN("12")["input_ids"], PLAIN("34")["input_ids"]
    end = PLAIN.eos_token_id
    found = reader(PLAIN, begun).read(prompt, [*answer, end])
    assert found.prompt == [begun.bos_token_id, *prompt]
    assert (found.answer, found.own) == (answer, [[0], [1]])
    back = reader(begun, PLAIN).read([begun.bos_token_id, *prompt], [*answer, end])
    assert (back.prompt, back.own) == (prompt, [[0], [1]])
    whole = reader(PLAIN, begun, ends=(True, True))
    ended, cut = (whole.read(prompt, ids) for ids in ([*answer, end], answer))
    assert (ended.answer, ended.own, ended.other) == ([*answer, end], *[[[0], [1], [2]]] * 2)
    assert (cut.answer, cut.own) == (answer, [[0], [1]])


@pytest.mark.parametrize("by_text", [True, False])
@pytest.mark.parametrize("compares", [True, False])
def test_what_stands_behind_the_end_token_is_not_compared(by_text, compares):
    """Templates of chats write a line break there; text there is no end."""
    whole = reader(by_text=by_text, ends=(compares, compares))
    words, end = PAIRS("12 34")["input_ids"], PAIRS.eos_token_id
    plain = whole.read([40], [*words, end])
    for behind in ("\n", " \n"):
        found = whole.read([40], [*words, end, *PAIRS(behind)["input_ids"]])
        assert found == plain
    assert len(plain.answer) == len(PLAIN("12 34")["input_ids"]) + compares
    assert whole.read([40], [*words, end, *words]) != plain


def test_places_are_cut_to_the_shorter_side():
    ids = [*PAIRS("1234 56")["input_ids"], PAIRS.eos_token_id]
    for ends, count in (((False, False), 3), ((True, False), 4), ((False, True), 3)):
        found = reader(by_text=False, ends=ends).read([40], ids)
        assert found.own == found.other == [[place] for place in range(count)]
        assert len(found.answer) == 7 + ends[1]


def test_tokenizers_whose_texts_depend_on_neighbours_are_refused():
    replaced = byte_level(decoder=decoders.Metaspace())
    for sides in ((replaced, PLAIN), (PLAIN, replaced)):
        with pytest.raises(BadValue, match="decodes by Metaspace: expected a byte-level one"):
            _ = reader(*sides).texts
    with pytest.raises(BadValue, match="reads 'A' as ' A': texts cannot be aligned"):
        _ = reader(PLAIN, byte_level(prefix=True)).texts


def llama(tokenizer, seed, **changes):
    settings = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2} | changes
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(
            LlamaConfig(
                vocab_size=len(tokenizer),
                num_attention_heads=4,
                num_key_value_heads=2,
                initializer_range=0.3,
                eos_token_id=tokenizer.eos_token_id,
                pad_token_id=tokenizer.pad_token_id,
                bos_token_id=None,
                tie_word_embeddings=True,
                **settings,
            )
        )


@pytest.fixture
def make(tmp_path):
    """Return a builder of trainers of a student with pairs and a teacher without."""

    def build(
        model=None, teacher=None, *, plays=None, rollouts=None, tokenizers=(PAIRS, PLAIN), **changes
    ):
        class Ours(core.GOLDTrainer):
            def generate(self, prompts):
                generated = super().generate(prompts) if plays is None else next(played)
                if rollouts is not None:
                    rollouts.append(generated)
                return generated

        played, data = iter(plays or ()), changes.pop("data", None)
        folder = tmp_path / "teacher"
        tokenizers[1].save_pretrained(folder)
        settings = QUIET | ULD | {"teacher_tokenizer_name_or_path": str(folder)} | changes
        return Ours(
            model or llama(tokenizers[0], 0),
            teacher or llama(tokenizers[1], 1, hidden_size=48),
            args=core.GOLDConfig(output_dir=str(tmp_path), **settings),
            train_dataset=sums() if data is None else data,
            processing_class=tokenizers[0],
        )

    return build


def of_texts(*texts):
    """Completions of a student with pairs, the first of them without an end token."""
    rows = [PAIRS(text)["input_ids"] for text in texts]
    ended = [rows[0], *([*row, PAIRS.eos_token_id] for row in rows[1:])]
    prompts = [PAIRS("12=")["input_ids"] for _ in texts]
    return Generated(prompt_ids=prompts, completion_ids=ended, completions=list(texts))


PLAYED = of_texts("1234", "5x34", "é12", "7", "3456", "12 ", "8888", "0")


def rows_of(model, prompt, ids, temperature=1.0):
    """Probabilities that predict each of the tokens."""
    with torch.no_grad():
        found = model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
    return (found / temperature).softmax(-1)


def expected_losses(student, teacher, generated, strategy, compare, heats=(1.0, 1.0)):
    """The loss of each group of each completion, one completion at a time."""
    found = []
    for prompt, ids in zip(generated.prompt_ids, generated.completion_ids, strict=True):
        read = reader().read(prompt, ids)
        sides = (
            (rows_of(student, prompt, ids, heats[0]), ids, read.own),
            (rows_of(teacher, read.prompt, read.answer, heats[1]), read.answer, read.other),
        )
        pair = (merged(rows, torch.tensor(t), groups, strategy) for rows, t, groups in sides)
        found.append(compare(*pair))
    return found


@pytest.mark.parametrize("strategy", ["observed", "bayesian"])
@pytest.mark.parametrize("normalize", ["sequence", "token"])
def test_the_loss_is_the_mean_distance_of_groups(strategy, normalize, make):
    """The mean over tokens divides by the trained tokens, of which a group may have several."""
    heats = {"uld_student_temperature": 0.8, "uld_teacher_temperature": 1.5}
    trainer = make(
        plays=[PLAYED],
        max_steps=1,
        uld_token_merge_strategy=strategy,
        normalize=normalize,
        uld_distillation_weight=1.5,
        **heats,
    )
    losses = expected_losses(
        copy.deepcopy(trainer.model),
        trainer.teacher.model,
        PLAYED,
        strategy,
        sorted_l1,
        tuple(heats.values()),
    )
    trainer.train()
    tokens = sum(map(len, PLAYED.completion_ids))
    mean = (
        torch.stack([x.mean() for x in losses]).mean()
        if normalize == "sequence"
        else torch.cat(losses).sum() / tokens
    )
    assert logs(trainer, "loss") == [pytest.approx(1.5 * mean.item(), rel=1e-4)]
    assert logs(trainer, "on_policy_loss") == [
        pytest.approx(torch.cat(losses).mean().item(), rel=1e-4)
    ]
    assert logs(trainer, "uld/aligned_share") == [pytest.approx(1 - 7 / tokens)]  # end tokens
    merges = 7  # 1234; 34; é, 12; 34, 56; 12
    assert logs(trainer, "uld/merged_share") == [pytest.approx(merges / len(torch.cat(losses)))]


@pytest.mark.parametrize("weights", [(None, None), (0.7, 0.2)])
def test_entries_of_both_vocabularies_are_compared_directly(weights, make):
    names = ("uld_hybrid_matched_weight", "uld_hybrid_unmatched_weight")
    trainer = make(
        plays=[PLAYED],
        max_steps=1,
        uld_use_hybrid_loss=True,
        beta=0.3,
        **dict(zip(names, weights, strict=True)),
    )
    assert len(trainer.matches.own) == len(PLAIN)

    def compare(own, other):
        pair = (own[:, : len(PLAIN)].clamp(min=1e-8).log(), other.clamp(min=1e-8).log())
        return divergence(*pair, 0.3)

    losses = expected_losses(
        copy.deepcopy(trainer.model), trainer.teacher.model, PLAYED, "observed", compare
    )
    trainer.train()
    mean = torch.stack([x.mean() for x in losses]).mean() * (weights[0] or 1.0)
    assert logs(trainer, "loss") == [pytest.approx(mean.item(), rel=1e-4)]
    assert logs(trainer, "unmatched_loss") == [0.0]
    assert logs(trainer, "matched_loss")[0] > 0
    assert 0 < logs(trainer, "uld/matched_mass")[0] <= 1


MODES = {
    "sorted": {},
    "by the chain rule": {"uld_token_merge_strategy": "bayesian"},
    "hybrid": {"uld_use_hybrid_loss": True, "beta": 1.0},
    "by places": {"use_extended_uld": False},
    "with end tokens": {"uld_skip_student_eos": False, "uld_skip_teacher_eos": False},
}


@pytest.mark.parametrize("mode", MODES)
def test_a_teacher_equal_to_the_student_has_a_loss_of_zero(mode, make):
    pair = llama(PAIRS, 0), llama(PAIRS, 0)
    trainer = make(*pair, plays=[PLAYED], tokenizers=(PAIRS, PAIRS), max_steps=1, **MODES[mode])
    start = weights(trainer.model).clone()
    trainer.train()
    assert logs(trainer, "loss") == [pytest.approx(0.0, abs=1e-6)]
    assert (weights(trainer.model) - start).abs().max() < 1e-5


@pytest.mark.parametrize("mode", ["sorted", "hybrid", "by places"])
def test_completions_without_text_have_no_loss(mode, make):
    ended = Generated(
        prompt_ids=[[40, 41]] * 8, completion_ids=[[PAIRS.eos_token_id]] * 8, completions=[""] * 8
    )
    trainer = make(plays=[ended], max_steps=1, **MODES[mode])
    start = weights(trainer.model).clone()
    trainer.train()
    assert logs(trainer, "loss") == logs(trainer, "uld/aligned_share") == [0.0]
    assert torch.equal(weights(trainer.model), start)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("mode", MODES)
def test_a_split_changes_no_update(mode, split, make, monkeypatch):
    pair = double(llama(PAIRS, 0)), double(llama(PLAIN, 1))
    whole = make(*copy.deepcopy(pair), plays=[PLAYED], max_steps=1, **MODES[mode])
    whole.train()
    if split == "in pieces":
        monkeypatch.setitem(micro_pieces.TOKENS, "cpu", 1)
    other = make(*copy.deepcopy(pair), plays=[PLAYED], max_steps=1, **MODES[mode], **SPLITS[split])
    other.train()
    assert (weights(whole.model) - weights(other.model)).abs().max() < SINGLE
    assert (weights(whole.model) - weights(pair[0])).abs().max() > 1e-5
    assert logs(other, "loss") == pytest.approx(logs(whole, "loss"), rel=1e-6)


def test_the_likelihood_is_of_data_alone(make):
    """The student's own samples have one update, whatever weight the likelihood has."""
    trained = {}
    for is_own in (True, False):
        for weight in (0.0, 0.5):
            data = Dataset.from_dict({"prompt": ["12="] * 8, "completion": ["34"] * 8})
            trainer = make(
                plays=[PLAYED], max_steps=1, lmbda=0.5, data=data, uld_crossentropy_weight=weight
            )
            trainer.is_sampled_by_student = lambda answer=is_own: answer
            trainer.train()
            trained[is_own, weight] = trainer
    ends = {key: weights(trainer.model) for key, trainer in trained.items()}
    assert torch.equal(ends[True, 0.0], ends[True, 0.5])
    assert logs(trained[True, 0.5], "cross_entropy") == []
    assert (ends[False, 0.0] - ends[False, 0.5]).abs().max() > 1e-3
    ids = [*PAIRS("34")["input_ids"], PAIRS.eos_token_id]
    rows = rows_of(llama(PAIRS, 0), PAIRS("12=")["input_ids"], ids)
    nll = -rows[range(len(ids)), ids].log().mean().item()
    with_it, without = (logs(trained[False, weight], "loss")[0] for weight in (0.5, 0.0))
    assert with_it - without == pytest.approx(0.5 * nll, rel=1e-4)
    assert logs(trained[False, 0.5], "cross_entropy") == [pytest.approx(nll, rel=1e-4)]


def test_without_the_loss_across_tokenizers_it_is_gkd_with_a_temperature(make):
    rollouts, settings = [], {"use_uld_loss": False, "teacher_tokenizer_name_or_path": None}
    pair = llama(PAIRS, 0), llama(PAIRS, 1)
    trainer = make(*pair, rollouts=rollouts, max_steps=1, temperature=1.7, **settings)
    student = copy.deepcopy(trainer.model)
    trainer.train()
    with torch.no_grad():
        apart = by_hand(student, pair[1], rollouts[0], lambda s, t: divergence(s, t, 0.5), 1.7)
    assert logs(trainer, "loss") == [pytest.approx(apart.mean().item(), rel=1e-5)]


def test_evaluation_reads_the_data(make):
    trainer = make(lmbda=0.5, per_device_eval_batch_size=4)
    metrics = trainer.evaluate(sums(4))
    assert metrics["eval_loss"] > 0
    assert metrics["eval_off_policy_loss"] > 0


def test_a_teacher_of_other_tokens_needs_the_loss_across_tokenizers(make, tmp_path):
    folder = tmp_path / "model"
    llama(PLAIN, 1).save_pretrained(folder)
    PLAIN.save_pretrained(folder)
    settings = {"use_uld_loss": False, "teacher_tokenizer_name_or_path": None}
    with pytest.raises(BadValue, match="take a teacher of one tokenizer, or set use_uld_loss=True"):
        make(None, str(folder), **settings)
    named = make(
        None, str(folder), teacher_tokenizer_name_or_path=None, plays=[PLAYED], max_steps=1
    )
    named.train()
    assert logs(named, "uld/merged_share")[0] > 0
    with pytest.raises(BadValue, match="a model without a name: set teacher_tokenizer"):
        make(teacher_tokenizer_name_or_path=None)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"uld_use_hybrid_loss": True}, "is no setting of use_uld_loss=False"),
        ({"teacher_tokenizer_name_or_path": "x"}, "is no setting of use_uld_loss=False"),
        (ULD | {"beta": 1.0}, r"beta=1.0 is of entries of both vocabularies"),
        (ULD | {"uld_hybrid_matched_weight": 1.0}, "is of entries of both vocabularies"),
        (
            ULD | {"uld_use_hybrid_loss": True, "uld_hybrid_matched_weight": 1.0},
            "without the other weight: set both, or none",
        ),
        (ULD | {"uld_skip_student_eos": False}, "an end token is compared with that of the other"),
        (ULD | {"uld_crossentropy_weight": 0.5}, "never of the student's own"),
        (ULD | {"uld_distillation_weight": -1.0}, "expected at least 0"),
        (ULD | {"uld_student_temperature": 0.0}, "uld_student_temperature=0.0"),
        (ULD | {"uld_token_merge_strategy": "last"}, "expected one of 'observed', 'bayesian'"),
        ({"seq_kd": True}, "GKDConfig has it"),
        ({"callbacks": ["x"]}, "give the trainer callbacks"),
        ({"packing": True}, "rows are packed"),
        ({"lmbda": 1.5}, r"GOLDConfig.lmbda=1.5: expected 0 to 1"),
        ({"max_length": 64, "max_completion_length": 64}, "for tokens of the prompt"),
    ],
    ids=str,
)
def test_settings_without_an_effect_are_refused(settings, line, tmp_path):
    with pytest.raises(BadValue, match=line):
        core.GOLDConfig(str(tmp_path), use_cpu=True, bf16=False, **settings)


@given(st.text(alphabet="0123456789+=a", max_size=12))
def test_a_student_of_the_nano_worlds_has_tokens_for_pairs_of_digits(text):
    """A text has one tokenization, and as many bytes; its teacher has a token for each of them."""
    pairs, plain = load_tokenizer("nano-pairs-20"), load_tokenizer("nano-20")
    found = reader(pairs, plain).read(plain("=")["input_ids"], pairs(text)["input_ids"])
    assert found.answer == plain(text)["input_ids"]
    assert [place for group in found.other for place in group] == [*range(len(text))]
    assert all(len(own) == 1 for own in found.own)
    assert pairs.decode(pairs(text)["input_ids"]) == text


def test_thirty_pairs_are_a_third_of_a_vocabulary():
    pairs, plain = load_tokenizer("nano-pairs-20"), load_tokenizer("nano-20")
    added = pairs.get_vocab().keys() - plain.get_vocab().keys()
    assert len(added) == 30
    assert all(len(token) == 2 and token.isdigit() for token in added)
    model = load_policy("nano-pairs-20")
    assert model.get_output_embeddings().weight.shape[0] == len(pairs) == 98
    assert (weights(model) - weights(load_policy("nano-pairs-20"))).abs().max() == 0
    assert (weights(model) - weights(load_policy("nano-pairs-21"))).abs().max() > 0.1
