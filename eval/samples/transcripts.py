"""Programs and their outputs in the text of an answer that uses tools."""

import re

from eval.sets.fewshot import PAL

STOP = "```output"  # where the model hands over to the program
ERROR = "Runtime errors: "
PROGRAM = re.compile(r"```python[^\n`]*\n(.*?)```", re.DOTALL)
RAISED = re.compile(
    r" ?[\w.]*(?:Error|Exception)(?::|$)"
)  # the last line of other executors' errors
OUTPUT = re.compile(r"```output\n(.*?)\n?```", re.DOTALL)


def program_of(text: str) -> str | None:
    """All programs of a text that ends in a fence as one; of the earlier ones no top-level print.

    None if it ends otherwise or holds no program.
    """
    blocks = PROGRAM.findall(text) if text.rstrip().endswith("```") else []
    if not blocks:
        return None
    earlier = [
        line for block in blocks[:-1] for line in block.splitlines() if not line.startswith("print")
    ]
    return "\n".join([*earlier, blocks[-1].rstrip()])


def with_output(text: str, output: str) -> str:
    """The text with an output block after its last program."""
    return f"{text.rstrip()}\n{STOP}\n{output}\n```\n"


def programs_run(transcript: str) -> tuple[int, int]:
    """How many programs a transcript shows the output of, and of how many an error instead."""
    blocks = OUTPUT.findall(transcript)
    return len(blocks), sum(map(is_error, blocks))


def is_error(output: str) -> bool:
    """Whether an output block holds an error; after other output an error is not shown."""
    lines = output.strip().splitlines()
    return output.startswith(ERROR) or (bool(lines) and RAISED.match(lines[-1]) is not None)


def last_output(transcript: str) -> str | None:
    """What the last program printed; None without one."""
    blocks = OUTPUT.findall(transcript)
    return blocks[-1] if blocks else None


def graded_part(output: str, mode: str) -> str:
    """What of an output is graded: all of it, or of a program what it gave and not its error."""
    if mode != PAL:
        return output
    value = last_output(output)
    return "" if value is None or is_error(value) else with_output("", value)
