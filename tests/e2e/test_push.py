"""A trained model and its card reach the hub, and what is in the way is said before training."""

import pytest
from changed_settings import changed
from hub_server import serving  # pyright: ignore[reportMissingImports] - in tests/unit

PAPER = "deepseekmath-grpo"
NAME = ("--push-to-hub", "me/named")


def test_a_model_and_its_card_are_sent_after_the_run(start, root, settings):
    few = ("benchmarks=gsm8k", "heldout_problems=0", "max_steps=1")
    asked = ("run", PAPER, *NAME, "--jobs", 1, *changed(settings, *few))
    with serving() as (server, env):
        unknown = start(*asked, HF_TOKEN="hf_of_nobody", **env)
        said = unknown.communicate()[1].splitlines()
        assert (unknown.returncode, list(root.glob("runs/train-*"))) == (2, [])
        assert said[-1].startswith("HubError: nothing was uploaded (")
        assert server.commits == []
        known = start(*asked, HF_TOKEN="hf_of_a_test", **env)
        _, said = known.communicate()
    assert known.returncode in (0, 1), said
    assert said.splitlines()[-1].startswith("pushed: http://127.0.0.1:")
    (commit,) = server.commits
    sent = {line["value"]["path"] for line in commit if line["key"] == "file"}
    assert {"README.md", "model.safetensors", "tokenizer.json"} <= sent


@pytest.mark.parametrize(
    ("paper", "given", "message"),
    [
        (PAPER, ("--push-to-hub", "named"), "expected OWNER/NAME"),
        (PAPER, ("--push-to-hub", "me/na med"), "--push-to-hub me/na med: "),
        ("cmath", NAME, "trains no model"),
        (PAPER, (*NAME, "--sweep", "max_steps=1,2"), "the run that you choose"),
        (PAPER, (*NAME, "--claims"), "the run that you choose"),
        (PAPER, ("push_to_hub=true",), "give --push-to-hub OWNER/NAME"),
        (PAPER, ("hub_model_id=me/named",), "give --push-to-hub OWNER/NAME"),
    ],
)
def test_what_cannot_be_sent_is_refused_first(paper, given, message, repro, root):
    result = repro("run", paper, *given)
    assert result.exit_code == 2
    line = result.stderr.splitlines()[-1]
    assert message in line
    assert line.startswith("BadValue: ")
    assert not list(root.glob("runs/*-*"))
