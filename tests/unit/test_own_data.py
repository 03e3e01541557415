"""Rows of one's own: where they lie, what is asked of them, and what is refused before anything."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.collect.reward_calls import RewardFunction
from core.data.prompts import Prompts
from core.data.sets import find_sets
from core.data.sources import read_rows
from core.families.table import find_family
from core.paper.registry import find_paper
from core.rewards import Accuracy, LanguageConsistency
from core.run.order import run_order
from core.run.plan import make_plan
from core.run.request import Order
from core.samplers.policy import PolicySampler
from core.settings.resolve import resolve
from core.stages.chain import Chain
from core.stages.data import read_rows as made_rows
from eval.errors import BadValue, DamagedFile, MissingFile, ReproError
from eval.sets.benchmarks import find_benchmark
from eval.sets.problem import Problem
from eval.sets.prompts import REQUESTS
from papers.deepseekmath_grpo import PAPER

TEXT = st.text(max_size=30)
ROWS = [{"problem": f"{i} + 1?", "answer": str(i + 1), "level": i % 3} for i in range(12)]
TALK = [
    {"role": "user", "content": "One?"},
    {"role": "assistant", "content": "1"},
    {"role": "user", "content": "And one more?"},
]


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file of JSON lines, and the folder as that of all stages."""
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    path = tmp_path / "sums.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    return path


def rows_of(*arguments):
    """What the data stage writes."""
    stage = Chain(resolve(PAPER, arguments=("heldout_problems=4", *arguments))).data
    stage.run()
    return made_rows(stage.folder)


@given(TEXT.filter(str.strip), st.none() | TEXT, st.integers())
def test_a_text_is_asked_as_a_users_turn_whatever_stands_in_it(text, system, level):
    row = {"question": text, "level": level, "completion": "1"}
    column = Prompts(column="question", system=system).with_prompt("own", 0, row)
    template = Prompts(template="{{ question }}", system=system).with_prompt("own", 0, row)
    before = [] if system is None else [{"role": "system", "content": system}]
    assert column == template
    assert column["prompt"] == [*before, {"role": "user", "content": text}]
    assert column["completion"] == [{"role": "assistant", "content": "1"}]
    assert column["id"] == "own-0"
    assert {name: column[name] for name in ("question", "level")} == {
        "question": text,
        "level": level,
    }


@given(st.sampled_from(["a", "b + c", "a ~ b[c]", "a|upper", "1"]))
def test_the_columns_of_a_template_are_those_without_which_it_fails(expression):
    prompts = Prompts(template=f"Say {{{{ {expression} }}}}")
    row = {"a": "x", "b": "yz", "c": 1, "d": 0} | ({"b": 2} if "+" in expression else {})
    prompts.with_prompt("own", 0, {name: row[name] for name in prompts.columns})
    for name in prompts.columns:
        with pytest.raises(BadValue, match="own, row 4: prompt_template fails with Undefined"):
            prompts.with_prompt("own", 3, {n: v for n, v in row.items() if n != name})


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_row_may_be_asked_as_the_benchmarks_ask(language, monkeypatch):
    prompts = Prompts(template="{{ problem | with_request(language) }}")
    problem = Problem(id="1", question="How many?", answer="2", language=language)
    asked = find_benchmark("gsm8k").prompt(problem)
    row = {"problem": problem.question, "language": language}
    assert prompts.with_prompt("own", 0, row)["prompt"] == [{"role": "user", "content": asked}]
    before = prompts.wording
    monkeypatch.setitem(REQUESTS, ("cot", language), "Answer.")
    assert prompts.wording != before
    assert "requests" not in Prompts(template="{{ problem }}").wording


@pytest.mark.parametrize("system", [None, "Be brief."])
def test_a_conversation_is_asked_whole(system, build_llama, tiny_tokenizer):
    sampler = PolicySampler(build_llama(), tiny_tokenizer)
    prompt = Prompts(system=system).with_prompt("own", 0, {"prompt": TALK})["prompt"]
    text = tiny_tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
    assert sampler.encode(prompt) == tiny_tokenizer(text, add_special_tokens=False)["input_ids"]
    assert sampler.encode(TALK, system=system) == sampler.encode(prompt)
    assert sampler.encode("One?") == sampler.encode(TALK[:1])
    with pytest.raises(BadValue, match="a conversation needs a chat template"):
        sampler.encode(TALK, chat=False)


@pytest.mark.parametrize("other", [[], ["pocket-gsm8k"]])
def test_rows_of_a_file_keep_their_columns_and_join_others(file, other):
    template = "prompt_template=Level {{ level }}: {{ problem }}"
    if other:
        template = "system_prompt=Be brief."
        file.write_text(file.read_text().replace('"problem"', '"prompt"'))
    found = rows_of(f"data={'+'.join([str(file), *other])}", template)
    own = [row for row in found if row["id"].startswith(str(file))]
    assert len(own) == len(ROWS)
    assert (len(found) > len(own)) == bool(other)
    for place, (row, said) in enumerate(zip(own, ROWS, strict=True)):
        asked = said["problem"] if other else f"Level {said['level']}: {said['problem']}"
        assert row["prompt"][-1] == {"role": "user", "content": asked}
        assert (row["answer"], row["level"]) == (said["answer"], said["level"])
        assert row["id"] == f"{file}-{place}"
    if other:
        assert all(row["prompt"][0] == {"role": "system", "content": "Be brief."} for row in found)


@pytest.mark.parametrize(("place", "split"), [("me/sums", "train"), ("me/sums:hard", "hard")])
def test_rows_of_the_hub_are_given_by_their_place(place, split, tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_ROOT", str(tmp_path))
    asked = []

    def load(name, config, *, split):
        asked.append((name, config, split))
        return ROWS

    monkeypatch.setattr("datasets.load_dataset", load)
    found = rows_of(f"data=hub:{place}", "prompt_column=problem")
    assert asked == [("me/sums", None, split)]
    assert [row["prompt"][0]["content"] for row in found] == [row["problem"] for row in ROWS]


def test_another_prompt_is_another_training(file):
    keys = [
        Chain(resolve(PAPER, arguments=(f"data={file}", *more))).train.key
        for more in (
            ("prompt_column=problem",),
            ("prompt_template={{ problem }}",),
            ("prompt_column=problem", "system_prompt=Be brief."),
        )
    ]
    assert len({*keys}) == 3


def test_the_systems_turn_stands_before_every_benchmark_problem():
    said = resolve(PAPER, arguments=("system_prompt=Be brief.",))
    for one, system in ((said, "Be brief."), (resolve(PAPER), None)):
        chain = Chain(one)
        stages = [*chain.evaluations(chain.start), *chain.evaluations(chain.policy)]
        assert {stage.question.decoding.system for stage in stages} == {system}


def by_target(completions, target, prompts, level=None, **_):
    """A reward that reads a column."""
    del prompts, level
    return [float(len(c) == t) for c, t in zip(completions, target, strict=True)]


@pytest.mark.parametrize(
    ("rewards", "held_out", "reads"),
    [
        ((Accuracy(),), 0, ("prompt", "answer")),
        ((by_target,), 0, ("prompt", "target")),
        ((by_target,), 5, ("prompt", "answer", "target")),
        ((Accuracy(), LanguageConsistency()), 5, ("prompt", "answer", "language")),
    ],
)
def test_a_run_reads_what_its_rewards_and_its_held_out_problems_need(rewards, held_out, reads):
    assert find_family("grpo").reads(rewards, held_out) == reads
    assert find_family("sft").reads(rewards, held_out) == ("prompt", "completion")


def test_columns_that_a_reward_has_a_default_for_are_not_needed():
    assert RewardFunction.of(by_target).columns == ("target",)


PROBLEM = ("prompt_column=problem",)
WRONG = {
    "no column": ((), "has no column prompt, which grpo trains on; it has problem, answer, level"),
    "no such column": (("prompt_column=text",), "has no column text, which grpo trains on"),
    "no name in it": (("prompt_template={{ problem }}{{ hint }}",), "has no column hint"),
    "both": ((*PROBLEM, "prompt_template=x"), "prompt_column and prompt_template are both given"),
    "no template": (("prompt_template={{ problem",), "TemplateSyntaxError: unexpected end"),
    "a file": (("prompt_template={% include '/etc/passwd' %}",), "no loader for this environment"),
    "its classes": (("prompt_template={{ problem.__class__ }}",), "SecurityError: access to attri"),
    "a sum": (("prompt_template={{ problem + 1 }}",), "row 1: prompt_template fails with TypeErr"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_asked_is_refused_before_anything_is_made(what, file):
    arguments, words = WRONG[what]
    given = (f"data={file}", *arguments)
    for start in (
        lambda: make_plan(resolve(PAPER, arguments=given), 0),
        lambda: run_order(Order(paper=PAPER, arguments=given)),
    ):
        with pytest.raises(ReproError) as error:
            start()
        assert words in str(error.value)
        assert "\n" not in str(error.value)
    assert not (file.parent / "runs").exists()


def test_a_column_that_a_reward_needs_is_named_before_anything_loads(file):
    paper = replace(PAPER, rewards=(by_target,), claims=())
    with pytest.raises(BadValue, match="has no column target, which grpo trains on"):
        run_order(Order(paper=paper, arguments=(f"data={file}", *PROBLEM)))


@pytest.mark.parametrize("line", [b"[]", b"5", b'[["a", 1]]', b"{", b"null"])
def test_a_line_that_is_no_object_is_named(line, file):
    first, second = file.with_name("first.jsonl"), file.with_name("second.jsonl")
    first.write_bytes(line + b"\n" + file.read_bytes())
    second.write_bytes(b'{"a": 1}\n\n' + line)
    with pytest.raises(DamagedFile, match=r"first\.jsonl, line 1: no"):
        find_sets(str(first))
    with pytest.raises(DamagedFile, match=r"second\.jsonl, line 3: no.* JSON object"):
        read_rows(second, None)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "the prompt is empty"),
        (" \n", "the prompt is empty"),
        ([], "the prompt is empty"),
        (["a"], "['a']: expected a text, or a list of messages with role and content"),
        ([{"rol": "user"}], "[{'rol': 'user'}]: expected a text, or a list of messages"),
        ([{"role": "user", "content": None}], "expected a text, or a list of messages"),
        ({"role": "user"}, "{'role': 'user'}: expected a text, or a list of messages"),
        ([{"role": "assistant", "content": "2"}], "expected a message of role user"),
        ([{"role": "user", "content": " "}], "expected a message of role user"),
    ],
)
def test_a_prompt_that_is_no_conversation_is_refused_with_its_row(value, words):
    with pytest.raises(BadValue) as refused:
        Prompts(column="question").with_prompt("own", 4, {"question": value, "answer": "1"})
    assert str(refused.value).startswith("BadValue: own, row 5: ")
    assert words in str(refused.value)


def test_problems_whose_steps_nobody_judges_are_not_held_out_of_labelled_steps(tmp_path):
    rows = [{"prompt": "1+1?", "completions": ["1", "2"], "labels": [True, False]}] * 4
    path = tmp_path / "steps.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    order = Order(paper=find_paper("prm"), arguments=(f"data={path}", "heldout_problems=2"))
    with pytest.raises(BadValue, match=r"of nano-digits alone can be judged: .*heldout_problems=0"):
        run_order(order)
    alone = resolve(order.paper, arguments=order.arguments[:1])
    assert "solutions" not in [stage.name for stage, _ in make_plan(alone, 0).stages]


def test_a_file_that_is_not_there():
    with pytest.raises(MissingFile, match=r"nowhere\.jsonl: no such file"):
        find_sets("nowhere.jsonl")


def test_a_file_of_another_kind_is_refused_with_the_one_that_is_read(tmp_path, monkeypatch):
    (tmp_path / "rows.csv").write_text("prompt,answer\n1+1,2\n")
    for name, kind in ((tmp_path / "rows.csv", "another file"), (tmp_path, "a folder")):
        expected = f"found {kind}: expected a file of JSON lines, named .jsonl or .jsonl.gz"
        with pytest.raises(BadValue, match=expected):
            find_sets(str(name))
    (tmp_path / "gsm8k").mkdir()
    monkeypatch.chdir(tmp_path)
    assert not find_sets("gsm8k")[0].own
