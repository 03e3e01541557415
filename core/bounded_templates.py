"""Sandbox for chat templates, which come with models: bounds of time, memory and length.

Importing this module applies the bounds to every template that transformers renders here.
"""

import resource
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager
from pathlib import Path
from threading import RLock
from time import thread_time
from typing import Any, TypeAlias

from jinja2 import Template, TemplateError, TemplateRuntimeError, TemplateSyntaxError, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from transformers.utils import chat_template_utils

from eval.errors import BadValue, ReproError

Tokenizer: TypeAlias = Any  # Any: a PreTrainedTokenizerBase, whose declared types are unions

SECONDS = 2.0  # of the processor, for one conversation
MEMORY = 2**28  # bytes that one conversation may add to the process
LENGTH = 2**24  # characters of a template, of its text and of what it repeats
QUOTED_CHARS = 300  # of a template's error message
BITS = 2**12  # of a product or a power of integers
MEMORY_USED = Path("/proc/self/statm")  # of Linux; elsewhere the memory is not bounded


def apply_template(
    tokenizer: Tokenizer,
    messages: Sequence[object],  # messages, or conversations of them
    **keywords: object,
) -> Any:  # Any: a text, token ids or a mapping, by the keywords
    """Apply the chat template of a tokenizer, which is foreign code, to messages.

    Raises:
        BadValue: the template refuses the messages, fails on them, or exceeds its bounds.
    """
    try:
        return tokenizer.apply_chat_template(messages, **keywords)
    except ReproError:
        raise
    except Exception as error:  # a template raises whatever its expressions raise
        kind = "" if isinstance(error, TemplateError) else f"{type(error).__name__}: "
        message = " ".join(str(error).split())[:QUOTED_CHARS]
        raise BadValue(
            f"the chat template of {tokenizer.name_or_path} refuses these turns: {kind}{message}"
        ) from error


class TemplateBound(TemplateRuntimeError):
    """Error of a template that exceeds its bound of time, memory or length."""


class Bounds(AbstractContextManager[None]):
    """Context manager that bounds the work of a template for one conversation.

    One template runs at a time, as the bound on memory is that of the process.
    """

    lock = RLock()

    def __init__(self, sandbox: "BoundedSandbox"):
        self.sandbox = sandbox
        self.left_s = SECONDS

    def __enter__(self) -> None:
        self.lock.acquire()
        self.before = self.sandbox.end
        self.sandbox.end = thread_time() + self.left_s
        self.limits = resource.getrlimit(resource.RLIMIT_AS)
        if MEMORY_USED.is_file():
            pages = int(MEMORY_USED.read_text(encoding="ascii").split()[0])
            soft, hard = self.limits
            largest = pages * resource.getpagesize() + MEMORY
            bound = largest if soft == resource.RLIM_INFINITY else min(soft, largest)
            resource.setrlimit(resource.RLIMIT_AS, (bound, hard))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_AS, self.limits)
        self.left_s = self.sandbox.end - thread_time()
        self.sandbox.end = self.before
        self.lock.release()
        if kind is not None and issubclass(kind, MemoryError):
            raise TemplateBound(f"it takes more than {MEMORY >> 20} MiB of memory") from None


class BoundedTemplate(Template):
    """Template that is rendered within `Bounds`."""

    def render(self, *args: object, **keywords: object) -> str:
        """Render as `Template.render` does, within the bounds on time, memory and length.

        Raises:
            TemplateBound: a bound is exceeded.
        """
        with Bounds(self.environment):  # pyright: ignore[reportArgumentType] - its own sandbox
            return super().render(*args, **keywords)

    def generate(self, *args: object, **keywords: object) -> Iterator[str]:
        """See `Template.generate`."""
        pieces, bounds = super().generate(*args, **keywords), Bounds(self.environment)  # pyright: ignore[reportArgumentType] - as above
        length = 0
        while True:
            with bounds:
                piece = next(pieces, None)
            if piece is None:
                return
            length += len(piece)
            check_length(length)
            yield piece


class BoundedSandbox(ImmutableSandboxedEnvironment):
    """Sandbox that checks the time in every loop and call, and sizes before products."""

    template_class = BoundedTemplate
    intercepted_binops = frozenset({"*", "**"})

    def __init__(self, *args: Any, **keywords: Any):
        super().__init__(*args, **keywords)
        self.end = float("inf")  # of the processor time of this thread
        self.filters["timed"] = self.check_time_of_each
        del self.globals["lipsum"]  # writes text of any length

    def check_time(self) -> None:
        """Raise if the running template has exceeded its time.

        Raises:
            TemplateBound: it has.
        """
        if thread_time() > self.end:
            raise TemplateBound(f"it takes more than {SECONDS:g} s of processor time")

    def check_time_of_each(self, values: Iterable[object]) -> Iterator[object]:
        """Yield values for a loop, checking the time before each."""
        for value in values:
            self.check_time()
            yield value

    def compile(self, source: Any, *args: Any, **keywords: Any) -> Any:
        """See `Environment.compile`, which evaluates constant expressions.

        Raises:
            TemplateBound: the source is too long, or it takes too much time or memory.
            TemplateSyntaxError: the source is no template, or is nested too deep.
        """
        if isinstance(source, str):
            check_length(len(source))
        with Bounds(self):
            try:
                return super().compile(source, *args, **keywords)
            except RecursionError as error:
                raise TemplateSyntaxError("it is nested too deep", 1) from error

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """See `Environment._parse`; every loop is made to iterate over `timed` values."""
        tree = super()._parse(source, name, filename)
        for loop in list(tree.find_all(nodes.For)):
            timed = nodes.Filter(loop.iter, "timed", [], [], None, None, lineno=loop.lineno)
            loop.iter = timed.set_environment(self)
        return tree

    def call(
        self, context: Context, function: object, /, *args: object, **keywords: object
    ) -> object:
        """See `SandboxedEnvironment.call`."""
        self.check_time()
        return super().call(context, function, *args, **keywords)

    def call_filter(
        self,
        name: str,
        value: object,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        context: Context | None = None,
        eval_ctx: nodes.EvalContext | None = None,
    ) -> object:
        """See `Environment.call_filter`, which `map` calls for each value."""
        self.check_time()
        return super().call_filter(name, value, args, kwargs, context, eval_ctx)

    def call_test(
        self,
        name: str,
        value: object,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        context: Context | None = None,
        eval_ctx: nodes.EvalContext | None = None,
    ) -> object:
        """See `Environment.call_test`, which `select` calls for each value."""
        self.check_time()
        return super().call_test(name, value, args, kwargs, context, eval_ctx)

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        """See `SandboxedEnvironment.call_binop`."""
        self.check_time()
        check_product(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def concat(self, pieces: Iterable[str]) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - "".join
        """Join the pieces of a text.

        Raises:
            TemplateBound: the text is too long.
        """
        joined, length = list[str](), 0
        for piece in pieces:
            length += len(piece)
            check_length(length)
            joined.append(piece)
        return "".join(joined)


def check_length(length: int) -> None:
    """Raise `TemplateBound` if a text has too many characters."""
    if length > LENGTH:
        raise TemplateBound(f"it makes {length} characters: expected at most {LENGTH}")


def check_product(operator: str, left: object, right: object) -> None:
    """Raise `TemplateBound` if a product or a power is too large to compute."""
    if isinstance(left, int) and isinstance(right, int):
        size = left.bit_length()
        bits = size * right if operator == "**" else size + right.bit_length()
        if bits > BITS:
            raise TemplateBound(f"it computes an integer of {bits} bits: expected at most {BITS}")
    for values, times in ((left, right), (right, left)):
        if isinstance(times, int) and isinstance(values, Sized):
            check_length(len(values) * times)


# transformers creates the sandbox of a chat template by this name; there is no other hook.
chat_template_utils.ImmutableSandboxedEnvironment = BoundedSandbox  # pyright: ignore[reportPrivateImportUsage]
