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
    """Join the programs of a text that ends in a fence; top-level prints stay in the last only.

    Returns:
        The joined program; None if the text does not end in a fence or has no program.
    """
    blocks = PROGRAM.findall(text) if text.rstrip().endswith("```") else []
    if not blocks:
        return None
    earlier = [
        line for block in blocks[:-1] for line in block.splitlines() if not line.startswith("print")
    ]
    return "\n".join([*earlier, blocks[-1].rstrip()])


def with_output(text: str, output: str) -> str:
    """Return a text with an output block appended."""
    return f"{text.rstrip()}\n{STOP}\n{output}\n```\n"


def programs_run(transcript: str) -> tuple[int, int]:
    """Return the number of output blocks in a transcript, and how many of these are errors."""
    blocks = OUTPUT.findall(transcript)
    return len(blocks), sum(map(is_error, blocks))


def is_error(output: str) -> bool:
    """Return whether an output starts with our error mark or ends in an exception line."""
    lines = output.strip().splitlines()
    return output.startswith(ERROR) or (bool(lines) and RAISED.match(lines[-1]) is not None)


def last_output(transcript: str) -> str | None:
    """Return the last output block of a transcript, or None if it has none."""
    blocks = OUTPUT.findall(transcript)
    return blocks[-1] if blocks else None


def graded_part(output: str, mode: str) -> str:
    """Return the text to grade: the output, or for PAL its program's value (empty on error)."""
    if mode != PAL:
        return output
    value = last_output(output)
    return "" if value is None or is_error(value) else with_output("", value)
