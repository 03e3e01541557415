"""Commands that start an OpenAI-compatible server for one model."""

import shlex

from eval.errors import BadValue

VLLM_SERVE = "vllm serve {model} --host 127.0.0.1 --port {port}"


def command_words(command: str, model: str, port: int) -> list[str]:
    """Return the command line for a model and a port as a list of words.

    Raises:
        BadValue: the command lacks `{model}` or `{port}`, or has another word in braces.
    """
    try:
        arguments = [word.format(model=model, port=port) for word in shlex.split(command)]
        missing = [part for part in ("{model}", "{port}") if part not in command]
    except (ValueError, KeyError, IndexError) as error:
        arguments, missing = (
            [],
            [f"a value for {error}" if isinstance(error, KeyError) else str(error)],
        )
    if missing or not arguments:
        raise BadValue(
            f"server command {command!r}: expected a command with {{model}} and {{port}}, such as "
            f"{VLLM_SERVE!r}; it lacks {' and '.join(missing)}"
        )
    return arguments
