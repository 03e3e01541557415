"""A student's completion as the text that a teacher reads in tokens of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, cast

from tokenizers import decoders
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerBase

from core.forward.batches import Batch
from core.forward.packing import unpad
from core.losses.transport import Groups, aligned_groups
from eval.errors import BadValue

# The byte of each character of a byte-level vocabulary: its own number below 256; the characters
# from U+0100 on stand for the other bytes, in order.
ALPHABET = sorted(ByteLevel.alphabet())
PLAIN = [ord(character) for character in ALPHABET if ord(character) < 256]
BYTES = dict(zip(ALPHABET, [*PLAIN, *sorted({*range(256)} - {*PLAIN})], strict=True))


def token_texts(tokenizer: PreTrainedTokenizerBase) -> dict[int, bytes]:
    """Return the text of each token as UTF-8, or as a part of it; special tokens have none.

    Raises:
        BadValue: the text of a token may depend on its neighbours.
    """
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)  # Any: slow tokenizers have none
    decoder = getattr(backend, "decoder", None)
    is_byte_level = isinstance(decoder, decoders.ByteLevel)
    if not is_byte_level and not isinstance(decoder, decoders.Fuse):
        raise BadValue(
            f"the tokenizer of {tokenizer.name_or_path or 'a model'!r} decodes by "
            f"{type(decoder).__name__}: expected a byte-level one, whose tokens can be aligned by "
            "their bytes; set use_extended_uld=False to compare tokens by their places"
        )
    added: Any = tokenizer.added_tokens_decoder
    special = {*tokenizer.all_special_ids, *(i for i, token in added.items() if token.special)}
    return {
        token: bytes(BYTES[character] for character in piece)
        if is_byte_level and token not in added
        else piece.encode()
        for piece, token in tokenizer.get_vocab().items()
        if token not in special
    }


class Reading(NamedTuple):
    """Tokens of one completion for a student and for its teacher.

    Attributes:
        prompt: The teacher's tokens of the prompt.
        answer: Its tokens of the completion, with its end token if that is compared.
        own: The student's tokens of each group, by their places.
        other: The teacher's tokens of each group.
    """

    prompt: list[int]
    answer: list[int]
    own: Groups
    other: Groups


@dataclass(frozen=True)
class Reader:
    """Converter of a student's completions to tokens of its teacher, with groups of both.

    Attributes:
        student: The student's tokenizer.
        teacher: The teacher's.
        ends: The tokens that end a completion of the student.
        by_text: Whether groups end at common bytes; otherwise a group is a token of each side at
            one place.
        compares_end: Whether the end token of the student and of the teacher is compared.
    """

    student: PreTrainedTokenizerBase
    teacher: PreTrainedTokenizerBase
    ends: Sequence[int]
    by_text: bool
    compares_end: tuple[bool, bool]

    @cached_property
    def texts(self) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """The texts of the tokens of the student and of the teacher.

        Raises:
            BadValue: see `token_texts`, or the teacher's tokens of a word are not that word.
        """
        own, other = token_texts(self.student), token_texts(self.teacher)
        word = min((text for text in other.values() if text.isalpha()), default=b"").decode()
        read = b"".join(other.get(token, b"") for token in self.tokens_of(word, begins=False))
        if read != word.encode():
            raise BadValue(
                f"the teacher's tokenizer reads {word!r} as {read.decode(errors='replace')!r}: "
                "texts cannot be aligned; set use_extended_uld=False to compare tokens by places"
            )
        return own, other

    @property
    def teacher_end(self) -> list[int]:
        """The teacher's end token, if it has one."""
        end = cast(int | None, self.teacher.eos_token_id)  # typed as of every special token
        return [] if end is None else [end]

    @property
    def pad(self) -> int:
        """A token to pad the teacher's with."""
        return cast(int, self.teacher.pad_token_id or 0)

    def read_rows(self, batch: Batch) -> list[Reading]:
        """Return the tokens of each row of a batch for student and teacher, see `Reading`."""
        prompts, completions = (
            unpad(batch[f"{part}_ids"], batch[f"{part}_mask"]) for part in ("prompt", "completion")
        )
        return [self.read(*row) for row in zip(prompts, completions, strict=True)]

    def read(self, prompt: Sequence[int], completion: Sequence[int]) -> Reading:
        """Return the `Reading` of a completion: of its text up to bytes that are no UTF-8.

        What a chat template writes behind the end token, such as a line break, is not compared.
        """
        end_place = self.end_of(completion)
        has_end = end_place < len(completion)
        words = list(completion[:end_place])
        text = self.text_of(words)
        answer = self.tokens_of(text, begins=False)
        own_end, other_end = (has_end and compares for compares in self.compares_end)
        end = self.teacher_end if other_end else []
        if self.by_text:
            own, other = self.groups_of(words, answer, text)
            if own_end and end:
                own, other = [*own, [len(words)]], [*other, [len(answer)]]
        else:
            shorter = min(len(words) + own_end, len(answer) + len(end))
            own = other = [[place] for place in range(shorter)]
        return Reading(self.prompt_of(prompt), [*answer, *end], own, other)

    def end_of(self, completion: Sequence[int]) -> int:
        """Return the place of the end token, behind which there is no text; else the length."""
        places = [place for place, token in enumerate(completion) if token in self.ends]
        behind = list(completion[places[-1] + 1 :]) if places else []
        is_last = places and not str(self.student.decode(behind)).strip()
        return places[-1] if is_last else len(completion)

    def prompt_of(self, prompt: Sequence[int]) -> list[int]:
        """Return the teacher's tokens of a prompt, with its own beginning token if it has one.

        The marks of the student's chat template are text to the teacher.
        """
        begins = bool(prompt) and prompt[0] == self.student.bos_token_id
        text = self.student.decode(list(prompt[begins:]), clean_up_tokenization_spaces=False)
        tokens = self.tokens_of(str(text), begins=True)
        return tokens[:-1] if tokens and tokens[-1:] == self.teacher_end else tokens

    def tokens_of(self, text: str, *, begins: bool) -> list[int]:
        """Return the teacher's tokens of a text, with its beginning token at a beginning."""
        return cast(list[int], self.teacher(text, add_special_tokens=begins)["input_ids"])

    def text_of(self, words: list[int]) -> str:
        """Return the text of a student's tokens, without that of special ones."""
        if not self.by_text:
            return str(self.student.decode(words, skip_special_tokens=True))
        data = b"".join(self.texts[0].get(token, b"") for token in words)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            return data[: error.start].decode()

    def groups_of(self, words: list[int], answer: list[int], text: str) -> tuple[Groups, Groups]:
        """Return the groups of both sides, as far as the teacher's tokens give the text back."""
        own, other = (
            [texts.get(token, b"") for token in tokens]
            for texts, tokens in zip(self.texts, (words, answer), strict=True)
        )
        ends, other_ends = ([*accumulate(map(len, pieces))] for pieces in (own, other))
        data, read = text.encode(), b"".join(other)
        return aligned_groups(ends, [end for end in other_ends if data[:end] == read[:end]])
