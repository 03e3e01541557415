"""Special tokens and chat templates that a run sets, in the tokenizer and in the model."""

from copy import deepcopy

import pytest
import torch
from datasets import Dataset
from peft import IA3Config, LoraConfig, get_peft_model
from tokenizers import AddedToken

from core import SFTConfig, SFTTrainer
from eval.errors import BadValue, MissingFile, ReproError

TURNS = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"


@pytest.fixture
def make_sft(build_llama, tiny_tokenizer, tmp_path):
    """Build a trainer with settings over a tiny Llama and a tokenizer of its own."""

    def build(model=None, tokenizer=None, peft_config=None, **changes):
        quiet = {"use_cpu": True, "bf16": False, "report_to": "none", "save_strategy": "no"}
        quiet |= {"disable_tqdm": True, "gradient_checkpointing": False, "learning_rate": 0.1}
        return SFTTrainer(
            model or build_llama(),
            SFTConfig(output_dir=str(tmp_path), max_steps=2, **quiet, **changes),
            train_dataset=Dataset.from_list([{"messages": TURNS}] * 8),
            processing_class=tokenizer or deepcopy(tiny_tokenizer),
            peft_config=peft_config,
        )

    return build


@pytest.fixture
def other_tokenizer(tiny_tokenizer, tmp_path):
    """A folder with a tokenizer of another template and more special tokens."""
    tokenizer = deepcopy(tiny_tokenizer)
    tokenizer.add_tokens(
        [AddedToken(t, special=True) for t in ("<|user|>", "<|assistant|>", "<|end|>")]
    )
    tokenizer.eos_token = "<|end|>"
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(tmp_path / "other")
    return str(tmp_path / "other")


@pytest.mark.parametrize(
    ("known", "expected"), [([7, 1], [2, 7, 1]), (1, [2, 1]), (None, [2]), ([1, 2], [1, 2])]
)
def test_an_end_token_is_one_that_generation_stops_at_too(known, expected, build_llama, make_sft):
    model = build_llama()
    model.generation_config.eos_token_id = known
    trainer = make_sft(model, eos_token="<unk>")
    assert trainer.processing_class.eos_token_id == model.config.eos_token_id == 2
    assert model.generation_config.eos_token_id == expected


def test_the_end_token_ends_every_text(make_sft, tiny_tokenizer):
    trainer = make_sft(eos_token="?")
    rows = trainer.prepared(Dataset.from_dict({"text": ["a"]}))
    assert rows["input_ids"] == [tiny_tokenizer("a?")["input_ids"]]


def test_the_padding_token_pads_and_is_the_models(make_sft, tiny_tokenizer):
    trainer = make_sft(pad_token="*")
    star = tiny_tokenizer.convert_tokens_to_ids("*")
    assert trainer.data_collator.pad_token_id == trainer.model.config.pad_token_id == star
    assert trainer.model.generation_config.pad_token_id == star


def test_a_template_of_a_file_is_used_and_saved(make_sft, tiny_tokenizer, tmp_path):
    path = tmp_path / "mine.jinja"
    path.write_text("{% for m in messages %}{{ m.content }}!{% endfor %}")
    trainer = make_sft(chat_template_path=str(path))
    assert trainer.train_dataset[0]["input_ids"] == tiny_tokenizer("hi!ho!")["input_ids"]
    trainer.save_model(str(tmp_path / "saved"))
    assert (tmp_path / "saved" / "chat_template.jinja").read_text() == path.read_text()


@pytest.mark.filterwarnings("ignore")  # TRL's own
def test_a_template_of_another_tokenizer_brings_its_tokens_as_in_trl(
    other_tokenizer, build_llama, tiny_tokenizer, make_sft
):
    from trl import clone_chat_template

    torch.manual_seed(42)
    model, tokenizer, _ = clone_chat_template(
        build_llama(), deepcopy(tiny_tokenizer), other_tokenizer
    )
    trainer = make_sft(chat_template_path=other_tokenizer)  # its seed is 42
    mine = trainer.processing_class
    assert mine.get_vocab() == tokenizer.get_vocab()
    assert (mine.chat_template, mine.eos_token) == (tokenizer.chat_template, tokenizer.eos_token)
    assert trainer.model.config.eos_token_id == model.config.eos_token_id
    assert trainer.model.generation_config.eos_token_id == model.generation_config.eos_token_id
    for name, value in model.state_dict().items():
        assert torch.equal(trainer.model.state_dict()[name], value), name
    trainer.train()


def test_an_end_token_that_is_set_wins_over_that_of_the_template(other_tokenizer, make_sft):
    trainer = make_sft(chat_template_path=other_tokenizer, eos_token="<eos>")
    assert trainer.processing_class.eos_token == "<eos>"
    assert trainer.model.config.eos_token_id == 1


@pytest.mark.parametrize("tied", [True, False])
def test_adapters_train_the_tokens_that_a_template_brings(
    tied, other_tokenizer, build_llama, make_sft
):
    """Their embeddings are random, and would stay so."""
    config = LoraConfig(r=2, target_modules=["q_proj"])
    model = build_llama(tie_word_embeddings=tied)
    trainer = make_sft(model, peft_config=config, chat_template_path=other_tokenizer)
    assert config.trainable_token_indices is config.modules_to_save is None

    def embedding(token):
        ids = torch.tensor(trainer.processing_class.convert_tokens_to_ids([token]))
        return trainer.model.get_input_embeddings()(ids).detach()

    before = {token: embedding(token) for token in ("<|user|>", "<|end|>", "h")}
    trainer.train()
    changed = {token: not torch.equal(embedding(token), old) for token, old in before.items()}
    assert changed == {"<|user|>": True, "<|end|>": True, "h": False}


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"eos_token": "<none>"}, BadValue, "eos_token='<none>': expected a token of the"),
        ({"pad_token": "<none>"}, BadValue, "pad_token='<none>': expected a token of the"),
        ({"chat_template_path": "./no.jinja"}, MissingFile, "chat_template_path='./no.jinja': no"),
        ({"chat_template_path": "./nowhere"}, MissingFile, "no folder ./nowhere"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(settings, error, message, make_sft):
    with pytest.raises(error, match=message) as found:
        make_sft(**settings)
    assert "\n" not in str(found.value)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_tokens_that_adapters_could_not_train_are_refused(other_tokenizer, build_llama, make_sft):
    adapted = get_peft_model(build_llama(), LoraConfig(r=2, target_modules=["q_proj"]))
    with pytest.raises(ReproError, match="resizes embeddings: merge the model's adapters first"):
        make_sft(adapted, chat_template_path=other_tokenizer)
    config = IA3Config(target_modules=["q_proj"], feedforward_modules=[])
    with pytest.raises(ReproError, match="IA3Config does not train: use LoraConfig"):
        make_sft(peft_config=config, chat_template_path=other_tokenizer)
