"""Table of data sets: their columns, licences, sizes and sources.

Another distribution adds a data set by an entry point of the group `repro.data`, `name =
"module:OBJECT"` with a `DataSet` of that name. Own rows need no entry: a file of JSON lines is
given by its path, `FILE.jsonl` or `FILE.jsonl.gz`, and a data set of the hub as `hub:owner/name` or
`hub:owner/name:split`. An unknown licence, number of rows or source is `None`; unpublished rows are
read from a folder of their name in REPRO_DATA.
"""

from collections.abc import Mapping
from pathlib import Path

from core.data.data_set import (
    GRADED,
    MESSAGES,
    PAIRS,
    PREFERENCES,
    PROBLEMS,
    TEXT,
    DataSet,
)
from core.data.generated_sets import (
    POCKET,
    canvas_texts,
    graded_pair_set,
    nano,
    pair_table,
    pocket,
    pocket_demonstration_set,
    revised_pair_set,
)
from core.data.pocket_demonstrations import FALLIBLE
from core.data.pocket_demonstrations import WORKED as WORKED_STYLES
from core.data.sources import File, Hub, Problems, outline
from eval.errors import BadValue, UnknownName
from eval.nano.random_tables import COUNTS
from eval.nano.splits import TASKS
from eval.registered import find_row

FILES, HUB = (".jsonl", ".jsonl.gz"), "hub:"  # suffixes of own files, prefix of own hub data sets


def problems(
    name: str,
    place: str,
    question: str,
    answer: str,
    *,
    licence: str | None = None,
    n: int | None = None,
    config: str | None = None,
    split: str = "train",
) -> DataSet:
    """Return a hub data set of questions and answers, with prompts as the benchmarks word them."""
    source = Hub(place, config, split, {"question": question, "answer": answer})
    return DataSet(name=name, columns=PROBLEMS, licence=licence, n=n, source=source)


def hub(
    name: str,
    place: str,
    columns: tuple[str, ...] | None = None,
    licence: str | None = None,
    *,
    n: int | None = None,
    config: str | None = None,
    split: str = "train",
) -> DataSet:
    """Return a hub data set whose rows stay unchanged."""
    return DataSet(
        name=name, columns=columns, licence=licence, n=n, source=Hub(place, config, split)
    )


def folder(name: str, columns: tuple[str, ...] | None = None) -> DataSet:
    """Return a data set without a known public source."""
    return DataSet(name=name, columns=columns)


ROWS = (
    pocket("pocket", POCKET),
    pocket("pocket-tiny", POCKET, first=15),
    *(
        pocket(name, (name,))
        for name in ("pocket-gsm8k", "pocket-math", "pocket-mgsm-zh", "pocket-cmath")
    ),
    pocket("pocket-worked", POCKET, "worked"),
    pocket("pocket-programs", POCKET, "program"),
    pocket("pocket-careful", POCKET, "careful"),
    pocket("pocket-short", POCKET, "short"),
    pocket("pocket-few-programs", POCKET, "program", first=150),
    pocket_demonstration_set("pocket-demonstrations", WORKED_STYLES),
    pocket_demonstration_set("pocket-fallible", FALLIBLE),
    revised_pair_set("pocket-revised", 2297),
    *(data_set for task in TASKS.values() for data_set in nano(task)),
    graded_pair_set("nano-digits-pairs"),
    # Margins of Llama 2 (arXiv 2307.09288 table 27) by grade.
    graded_pair_set("nano-digits-pairs-small", {3: 1.0, 2: 2 / 3, 1: 1 / 3}),
    graded_pair_set("nano-digits-pairs-large", {3: 3.0, 2: 2.0, 1: 1.0}),
    *map(pair_table, COUNTS),
    canvas_texts("nano-canvas"),
    # Mathematics and code with answers that can be checked.
    DataSet(name="gsm8k", columns=GRADED, licence="MIT", n=7473, source=Problems(("gsm8k",))),
    DataSet(name="math", columns=GRADED, licence="MIT", n=7500, source=Problems(("math",))),
    folder("math-level-3-5", PROBLEMS),
    folder("deepseekmath-questions", PROBLEMS),
    problems(
        "dapo-math-17k",
        "open-r1/DAPO-Math-17k-Processed",
        "prompt",
        "solution",
        config="all",
        licence="Apache-2.0",
    ),
    problems(
        "deepscaler",
        "agentica-org/DeepScaleR-Preview-Dataset",
        "problem",
        "answer",
        licence="MIT",
        n=40_315,
    ),
    problems("deepmath-103k", "zwhe99/DeepMath-103K", "question", "final_answer", licence="MIT"),
    problems("polaris-53k", "POLARIS-Project/Polaris-Dataset-53K", "problem", "answer", n=53_291),
    hub(
        "openr1-math-220k-verified",
        "HuggingFaceTB/OpenR1-Math-220k-default-verified",
        config="all",
    ),
    DataSet(
        name="numina-math-cot",
        columns=("id", "prompt", "question", "language", "completion"),
        licence="Apache-2.0",
        n=859_494,
        source=Hub(
            "AI-MO/NuminaMath-CoT", columns={"question": "problem", "completion": "solution"}
        ),
    ),
    hub("numina-math-1.5", "AI-MO/NuminaMath-1.5", ("problem", "solution", "answer")),
    hub("skywork-or1-math", "Skywork/Skywork-OR1-RL-Data", split="math"),
    hub("skywork-or1-code", "Skywork/Skywork-OR1-RL-Data", split="code"),
    hub("synthetic-1", "PrimeIntellect/SYNTHETIC-1"),
    hub("intellect-2", "PrimeIntellect/INTELLECT-2-RL-Dataset"),
    hub("eurus-rl", "PRIME-RL/Eurus-2-RL-Data"),
    hub("geometry3k", "hiyouga/geometry3k"),
    hub(
        "livecodebench-v6", "livecodebench/code_generation_lite", config="release_v6", split="test"
    ),
    hub("virl39k", "TIGER-Lab/ViRL39K", licence="MIT"),
    hub("countdown-gold", "HuggingFaceTB/Countdown-Task-GOLD", config="all"),
    hub("aime24", "math-ai/aime24", ("problem", "solution"), split="test"),
    problems("aime24-asked", "math-ai/aime24", "problem", "solution", n=30, split="test"),
    folder("gfpo-math-72k", PROBLEMS),
    folder("simplerl-zoo-easy-5k", PROBLEMS),
    folder("deepmath-easiest-5k", PROBLEMS),
    folder("lite-ppo-hard-5k", PROBLEMS),
    folder("toolrl-4k"),
    folder("knights-and-knaves"),
    folder("math-with-tools"),
    # Worked solutions, instructions and texts.
    hub("openthoughts-114k", "open-thoughts/OpenThoughts-114k"),
    hub("openthoughts3", "open-thoughts/OpenThoughts3-1.2M", licence="Apache-2.0"),
    hub("rstar-coder-seed", "microsoft/rStar-Coder", licence="CC-BY-4.0", config="seed_sft"),
    hub("tulu-3-sft", "allenai/tulu-3-sft-mixture", MESSAGES, "ODC-BY-1.0"),
    folder("tulu-3-sft-filtered", ("prompt", "completion")),
    hub("tulu-3-rlvr", "allenai/RLVR-GSM-MATH-IF-Mixed-Constraints", n=29_946),
    hub("dolly-15k", "databricks/databricks-dolly-15k", licence="CC-BY-SA-3.0", n=15_011),
    hub("sciknoweval", "hicai-zju/SciKnowEval", split="test"),
    hub("c4", "allenai/c4", TEXT, config="en"),
    hub("openwebtext", "Skylion007/openwebtext", TEXT),
    hub("tldr", "trl-lib/tldr", ("prompt", "completion")),
    folder("long-cot-qwq"),
    folder("tora-corpus"),
    folder("tora-shaped"),
    folder("amps"),
    folder("github-python"),
    folder("lm1b", TEXT),
    folder("sudoku"),
    hub("xsum", "EdinburghNLP/xsum"),
    folder("wmt14-en-de"),
    folder("flan2021"),
    folder("glue"),
    hub("e2e-nlg", "tuetschek/e2e_nlg"),
    folder("wikisql"),
    folder("samsum"),
    folder("commonsense-170k"),
    hub("arc-challenge", "allenai/ai2_arc", config="ARC-Challenge"),
    folder("toolalpaca"),
    hub("huatuogpt-o1-medical", "FreedomIntelligence/medical-o1-reasoning-SFT", config="en"),
    folder("disasters-2025"),
    # Preferences and judged answers.
    hub(
        "ultrafeedback",
        "HuggingFaceH4/ultrafeedback_binarized",
        (*PREFERENCES, *MESSAGES),
        "MIT",
        n=61_135,
        split="train_prefs",
    ),
    hub("ultrafeedback-ratings", "openbmb/UltraFeedback", licence="MIT"),
    hub(
        "ultrafeedback-cleaned",
        "argilla/ultrafeedback-binarized-preferences-cleaned",
        PREFERENCES,
    ),
    hub("ultrafeedback-clair", "ContextualAI/ultrafeedback_clair_32k", PREFERENCES),
    hub("dpo-mix-7k", "argilla/dpo-mix-7k", PAIRS),
    hub("capybara-preferences", "argilla/distilabel-capybara-dpo-7k-binarized", PAIRS),
    hub("helpsteer2", "nvidia/HelpSteer2"),
    hub("anthropic-hh", "Anthropic/hh-rlhf", PAIRS, "MIT"),
    hub("oasst", "OpenAssistant/oasst1"),
    hub("shp", "stanfordnlp/SHP"),
    hub("tldr-preferences", "trl-lib/tldr-preference", PREFERENCES, n=92_858),
    hub(
        "tulu-3-preferences-8b",
        "allenai/llama-3.1-tulu-3-8b-preference-mixture",
        PREFERENCES,
        "ODC-BY-1.0",
        n=272_898,
    ),
    hub("tulu-3-preferences-70b", "allenai/llama-3.1-tulu-3-70b-preference-mixture", PREFERENCES),
    hub("mmpr", "OpenGVLab/MMPR"),
    folder("ultrafeedback-unpaired", ("prompt", "completion", "label")),
    folder("ultrafeedback-on-policy-pairrm", PREFERENCES),
    folder("ultrafeedback-on-policy-armorm", PREFERENCES),
    folder("ultrafeedback-on-policy-scored", PREFERENCES),
    folder("ultrafeedback-triplets"),
    folder("apo-judge-on-policy", PREFERENCES),
    folder("apo-judge-off-policy", PREFERENCES),
    folder("imdb-sentiment-preferences", PREFERENCES),
    folder("alma-preferences", PREFERENCES),
    folder("bandit-preferences", PREFERENCES),
    folder("helpfulness-factuality-preferences", PREFERENCES),
    folder("gsm8k-step-labels"),
    folder("xpo-iterative-prompts"),
    # Rows that were not released.
    folder("minimax-m1-mix"),
    folder("deepseek-r1-rl"),
    folder("deepseek-r1-sft"),
    folder("deepseek-v3-2-mix"),
    folder("gspo-queries"),
    folder("sapo-queries"),
    folder("icepop-queries"),
    folder("tool-integrated-math-mix"),
    folder("llama-2-helpfulness", PREFERENCES),
    folder("openrlhf-chat-prompts"),
    folder("vespo-code"),
)
SETS: Mapping[str, DataSet] = {row.name: row for row in ROWS}


def find_sets(names: str) -> tuple[DataSet, ...]:
    """Return the data sets of a name or path, or of several joined with `+`.

    Raises:
        UnknownName: a name does not exist; similar names are listed.
        BadValue: an entry point is no `DataSet`, or has the name of one in this table.
        MissingFile, DamagedFile: a file does not exist, is empty, or has a line that is no JSON
            object.
    """
    return tuple(find_set(name) for name in names.split("+"))


def find_set(name: str) -> DataSet:
    """Return one data set; see `find_sets`.

    Raises:
        BadValue: the name is a file or folder that is not of JSON lines.
    """
    if name.endswith(FILES):
        columns, n = outline(Path(name))
        return DataSet(name=name, columns=columns, n=n, source=File(Path(name)), own=True)
    if name.startswith(HUB):
        place, _, split = name.removeprefix(HUB).partition(":")
        return DataSet(name=name, source=Hub(place, split=split or "train"), own=True)
    try:
        return find_row("training data", name, SETS, "repro.data", DataSet)
    except UnknownName:
        if not Path(name).exists():
            raise
    raise BadValue(
        f"data={name}: found {'a folder' if Path(name).is_dir() else 'another file'}: expected a "
        f"file of JSON lines, named {' or '.join(FILES)}; pandas writes one by "
        "to_json('rows.jsonl', orient='records', lines=True)"
    )
