"""Tokenizers of the kinds that models ship with, trained at once, and TRL's rows of token ids."""

from functools import cache
from types import SimpleNamespace

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer, UnigramTrainer, WordPieceTrainer
from transformers import PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

BEGIN, END, PAD, UNK = SPECIAL = ["<s>", "</s>", "<pad>", "<unk>"]
TEXT = ["what is 3+1= 4", "the answer: it's the answer.", "What is 12+30=42?", "ab abc  abcd\n\nab"]
CHAT = (
    "{% for m in messages %}[{{ m.role }}] {{ m.content }}"
    "{% if m.role == 'assistant' %}</s>{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)


def bpe(pre_tokenizer, decoder, normalizer=None, post_processor=None):
    tokenizer = Tokenizer(models.BPE(unk_token=UNK, byte_fallback=False))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoder
    if normalizer:
        tokenizer.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXT * 3, trainer)
    if post_processor:
        tokenizer.post_processor = post_processor
    return tokenizer


def byte_level(**options):
    return bpe(pre_tokenizers.ByteLevel(**options), decoders.ByteLevel())


def metaspace(scheme, **options):
    spaces = {"prepend_scheme": scheme, "split": False}
    return bpe(pre_tokenizers.Metaspace(**spaces), decoders.Metaspace(**spaces), **options)


def llama():
    """A space before every text by its normalizer, and a token that begins it."""
    begun = processors.TemplateProcessing(single=f"{BEGIN} $A", special_tokens=[(BEGIN, 0)])
    return bpe(
        pre_tokenizers.Split(Regex("never"), "isolated"),
        decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]),
        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
        begun,
    )


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = UnigramTrainer(
        vocab_size=80, special_tokens=SPECIAL, unk_token=UNK, show_progress=False
    )
    tokenizer.train_from_iterator(TEXT * 3, trainer)
    return tokenizer


def word_piece():
    """BERT's: lower case, pieces of words, a token on each side."""
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNK))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = WordPieceTrainer(vocab_size=120, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(TEXT * 3, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A {PAD}", special_tokens=[(BEGIN, 0), (PAD, 2)]
    )
    return tokenizer


KINDS = {
    "byte-level BPE": lambda: byte_level(add_prefix_space=False),
    "byte-level BPE, space first": lambda: byte_level(add_prefix_space=True),
    "SentencePiece, space always": lambda: metaspace("always"),
    "SentencePiece, space first": lambda: metaspace("first"),
    "SentencePiece, no space": lambda: metaspace("never"),
    "SentencePiece as of Llama": llama,
    "unigram": unigram,
    "WordPiece": word_piece,
}


@cache
def tokenizer_of(kind):
    return PreTrainedTokenizerFast(
        tokenizer_object=KINDS[kind](),
        bos_token=BEGIN,
        eos_token=END,
        pad_token=PAD,
        unk_token=UNK,
        chat_template=CHAT,
    )


def their_rows(dataset, tokenizer, *, chat_template=None, packing=False, **settings):
    """A dataset as TRL's trainer prepares it."""
    quiet = {"report_to": "none", "use_cpu": True, "activation_checkpointing": False}
    args = SFTConfig(output_dir="unused", **quiet, **settings)
    trainer = SimpleNamespace(
        _tokenizer=tokenizer,
        chat_template=chat_template,
        completion_only_loss={"prompt", "completion"} <= set(dataset.column_names),
    )
    rows = SFTTrainer._prepare_dataset(trainer, dataset, tokenizer, args, packing, None, "train")
    return [(row["input_ids"], row["labels"]) for row in rows]
