"""What is printed shows every character, whoever wrote it: no control reaches the terminal."""

import ast
import io
import json
import logging
import subprocess
import sys
import warnings
from pathlib import Path

from hypothesis import given
from hypothesis.strategies import characters, dictionaries, lists, text

import core
import eval as scoring
from core.cli import output
from core.collect.completion_log import CompletionLog
from core.errors import EngineError
from eval.errors import BadValue, DamagedFile, MissingFile
from eval.terminal import print_traceback, say, visible, visible_json, visible_messages

OUTSIDE = text(characters(categories=["Cc", "Cf", "Cs", "Co", "Lu", "Zs"]))
EVIL = "a\x1b[31mb\u202ec\x9bd\ud800"
FOLDERS = [Path(folder) for package in (core, scoring) for folder in package.__path__]
PRINTING = (
    "eval/terminal.py",
    "core/cli/output.py",
    "core/cli/main.py",
    "core/stages/watch/meter.py",
)
CHILDREN = ("eval/sandbox/inside/", "eval/grading/serve.py", "core/bench/large.py", "/templates/")


def harmless(words):
    return all(c.isprintable() or c in "\n\t" or (c.isspace() and c > "\x7f") for c in words)


@given(OUTSIDE)
def test_errors_are_visible_wherever_they_are_shown(words):
    for kind in (EngineError, BadValue, DamagedFile, MissingFile):
        assert harmless(str(kind(words)))


@given(OUTSIDE)
def test_all_ways_to_print_are_visible(words):
    data, errors = io.StringIO(), io.StringIO()
    token, other = output.DATA.set(data), output.ERRORS.set(errors)
    try:
        output.print_text(words)
        output.print_markdown(words)
        output.print_verdicts([f"held {words}"])
        output.print_columns(["a", words], [[words, 1]])
        output.tell([BadValue(words)])
    finally:
        output.DATA.reset(token)
        output.ERRORS.reset(other)
    say(words, errors)
    assert harmless(data.getvalue())
    assert harmless(errors.getvalue())
    assert visible(data.getvalue()) == data.getvalue()


class Terminal(io.StringIO):
    def isatty(self):
        return True


@given(lists(text(characters(categories=["Lu", "Cf", "Co"]), min_size=1), min_size=1))
def test_a_terminal_shows_the_same(words):
    data = Terminal()
    token = output.DATA.set(data)
    try:
        output.print_columns(words, [words])
        output.print_markdown(words[0])
        output.print_verdicts([f"tie {words[0]}"])
    finally:
        output.DATA.reset(token)
    assert not any(c in data.getvalue() for c in "".join(words) if not c.isprintable())


@given(dictionaries(OUTSIDE, lists(OUTSIDE)))
def test_printed_json_is_visible_and_means_the_same(value):
    plain = json.dumps(value, indent=2, ensure_ascii=False)
    assert harmless(visible_json(plain))
    assert json.loads(visible_json(plain)) == json.loads(json.dumps(value))


def test_what_libraries_log_and_warn_of_is_visible():
    shown = io.StringIO()
    handler, logger = logging.StreamHandler(shown), logging.getLogger("of a library")
    logger.addHandler(handler)
    try:
        with visible_messages():
            logger.warning("%s", EVIL)
            shown.write(warnings.formatwarning(EVIL, UserWarning, "file", 1, ""))
        plain = warnings.formatwarning(EVIL, UserWarning, "file", 1, "")
    finally:
        logger.removeHandler(handler)
    assert shown.getvalue().count(visible(EVIL)) == 2
    assert harmless(shown.getvalue())
    assert EVIL in plain


def test_a_traceback_is_visible(capsys):
    try:
        raise KeyError(7) from RuntimeError(EVIL)
    except KeyError as error:
        print_traceback(KeyError, error, error.__traceback__)
    shown = capsys.readouterr().err
    assert visible(EVIL) in shown
    assert harmless(shown)


def test_the_table_of_completions_shows_their_texts(capsys):
    log = CompletionLog(3)
    numbers = [0.0] * 3
    evil = EVIL.removesuffix("\ud800")  # which no tokenizer writes
    log.add(["[/b]", evil, "[red]x"], [evil, "[/]", "y"], {"r": numbers}, {}, numbers)
    log.show(1, None)
    shown = capsys.readouterr().err
    assert harmless(shown)
    assert "[/b]" in shown
    assert "[red]x" in shown


NAMES = ("no\x1b[31m\u202e", "/nowhere/\x1b]0;title\x07")
EVALUATED = """
import sys
from core.cli.main import app
for name in sys.argv[1:]:
    try:
        app(["eval", name, "--benchmarks", "pocket-math"])
    except SystemExit as end:
        print(end.code)
"""


def test_a_command_shows_names_from_outside():
    command = [sys.executable, "-c", EVALUATED, *NAMES]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "2\n2\n"
    assert harmless(done.stderr)
    assert all(visible(name) in done.stderr for name in NAMES)


def calls(text):
    """The functions that a program calls by name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield ast.unparse(node.func)


WORDS = ("print", "write", "echo", "Console")  # of each way to print


def test_nothing_prints_but_through_these_functions():
    files = [path for folder in FOLDERS for path in folder.rglob("*.py")]
    assert len(files) > 200
    raw = {"print", "sys.stderr.write", "sys.stdout.write", "typer.echo", "Console"}
    texts = {path.as_posix(): path.read_text(encoding="utf-8") for path in files}
    naming = {path: text for path, text in texts.items() if any(word in text for word in WORDS)}
    found = {path for path, text in naming.items() if raw & set(calls(text))}
    allowed = (*PRINTING, "core/collect/completion_log.py")
    assert not [
        path
        for path in found
        if not path.endswith(allowed) and not any(c in path for c in CHILDREN)
    ]
