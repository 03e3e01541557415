import math
import re

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from core.families.family import HELD_OUT
from core.families.grpo import GRPO
from eval.errors import BadValue, UnknownName
from eval.tables.palette import COLOURS, DARK, INK, PAPER, style, to_bytes
from eval.tables.plots import NAMED, over_seeds, sampling_curves, training_curves
from eval.tables.render import TEMPLATES

KS = [1, 2, 4, 8]
TRAINING = GRPO.figures[0].metrics


def curve(base):
    part = {"k": KS}
    for name, slope in (("maj", 2.0), ("pass", 6.0)):
        part[name] = [base + slope * math.log2(k) for k in KS]
        part[f"{name}_low"] = [value - 4.0 for value in part[name]]
        part[f"{name}_high"] = [value + 4.0 for value in part[name]]
    return part


def run(arm, seed, steps=4):
    return {
        "arm": arm,
        "seed": seed,
        "curves": {
            metric: [[step, seed + 0.1 * step + place] for step in range(1, steps + 1)]
            for place, metric in enumerate([*TRAINING, "held_out/accuracy"])
        },
        "sampling": {"gsm8k": {"before": curve(40.0 + seed), "after": curve(50.0 + seed)}},
    }


RUNS = [run(arm, seed) for arm in ("grpo", "rft") for seed in range(3)]


def drawn(axes):
    return [list(zip(*line.get_data(), strict=True)) for line in axes.lines]


def given(run, metric):
    return [tuple(point) for point in run["curves"][metric]]


def test_training_panels_draw_the_mean_of_each_arm_in_the_band_of_its_seeds():
    figure = training_curves(RUNS, TRAINING)
    assert [axes.get_ylabel() for axes in figure.axes] == list(TRAINING.values())
    for axes, metric in zip(figure.axes, TRAINING, strict=True):
        assert axes.get_xlabel() == "optimizer step"
        for arm in (0, 1):
            seeds = [given(run, metric) for run in RUNS[3 * arm : 3 * arm + 3]]
            # seeds 0 1 2: the mean is seed 1
            np.testing.assert_allclose(drawn(axes)[arm], seeds[1])
            (path,) = axes.collections[arm].get_paths()
            corners = {tuple(np.round(point, 9)) for point in path.vertices}
            ends = {tuple(np.round(point, 9)) for seed in (seeds[0], seeds[2]) for point in seed}
            assert ends <= corners


def test_the_legend_names_every_arm_once_with_its_seeds():
    texts = [text.get_text() for text in training_curves(RUNS[:4], TRAINING).legends[0].get_texts()]
    assert texts == ["grpo (3 seeds)", "rft (1 seed)"]


def test_held_out_accuracy_draws_all_arms_in_percent():
    (axes,) = training_curves([run(arm, 0) for arm in "abc"], HELD_OUT.metrics).axes
    assert drawn(axes) == [given(run("a", 0), "held_out/accuracy")] * 3
    assert axes.get_ylabel() == "held-out accuracy (%)"


@pytest.mark.parametrize(
    ("count", "arm"), [(4, "arm-"), (24, "arm-"), (25, "arm-"), (60, "lora-batch-16-lr-0.0")]
)
def test_panels_keep_their_height_and_legends_their_place_however_many_lines_there_are(count, arm):
    figure = training_curves([run(f"{arm}{n}", 0) for n in range(count)], TRAINING)
    width, height = figure.get_size_inches() * figure.dpi
    legend = figure.legends[0].get_window_extent()
    assert 0 <= legend.x0 < legend.x1 <= width
    assert 0 <= legend.y0 < legend.y1 <= height
    lowest = min(axes.get_position().height for axes in figure.axes)
    assert lowest * figure.get_figheight() > (1.2 if count > NAMED else 0.8)
    named = [len(axes.texts) for axes in figure.axes]
    assert named == [0 if count > NAMED else count] * len(TRAINING)


def test_steps_are_sorted_and_missing_values_left_out():
    odd = run("grpo", 0)
    odd["curves"]["reward"] = [[3, 0.3], [1, 0.1], [2, None]]
    assert drawn(training_curves([odd], TRAINING).axes[0]) == [[(1, 0.1), (3, 0.3)]]


def test_mean_and_band_cover_only_steps_that_all_seeds_have():
    assert over_seeds([[(1, 0.0), (2, 2.0), (3, 9.0)], [(1, 1.0), (2, 4.0)]]) == [
        (1, 0.5, 0.0, 1.0),
        (2, 3.0, 2.0, 4.0),
    ]


def test_sampling_panels_draw_the_mean_over_seeds_with_its_band():
    (axes,) = sampling_curves(RUNS[:3], {"gsm8k": "GSM8K"}).axes
    middle = RUNS[1]["sampling"]["gsm8k"]  # seeds 0 1 2: the mean is seed 1
    expected = [
        list(zip(KS, middle[moment][name], strict=True))
        for name in ("maj", "pass")
        for moment in ("before", "after")
    ]
    assert len(axes.lines) == 4
    for line, mean in zip(drawn(axes), expected, strict=True):
        np.testing.assert_allclose(line, mean)
    assert [line.get_label() for line in axes.lines] == [
        "Maj@K before RL",
        "Maj@K after RL",
        "Pass@K before RL",
        "Pass@K after RL",
    ]
    assert axes.get_xscale() == "log"
    assert axes.xaxis.get_transform().base == 2
    assert len(axes.collections) == 4


def test_the_band_of_one_seed_is_its_interval():
    (axes,) = sampling_curves(RUNS[:1], {"gsm8k": "GSM8K"}).axes
    (path,) = axes.collections[0].get_paths()
    part = RUNS[0]["sampling"]["gsm8k"]["before"]
    corners = {(k, round(y, 9)) for k, y in path.vertices}
    for end in ("maj_low", "maj_high"):
        assert {(k, round(y, 9)) for k, y in zip(KS, part[end], strict=True)} <= corners


def test_a_benchmark_that_was_not_sampled_says_so():
    axes = sampling_curves(RUNS[:1], {"gsm8k": "GSM8K", "math": "MATH"}).axes[1]
    assert [text.get_text() for text in axes.texts] == ["not sampled"]


@pytest.mark.parametrize("fmt", ["svg", "png"])
def test_the_same_runs_give_the_same_bytes(fmt):
    first = to_bytes(sampling_curves(RUNS[:3], {"gsm8k": "GSM8K"}), fmt)
    second = to_bytes(sampling_curves(RUNS[:3], {"gsm8k": "GSM8K"}), fmt)
    assert first == second
    assert first != to_bytes(sampling_curves(RUNS[:2], {"gsm8k": "GSM8K"}), fmt)


def test_a_figure_can_be_written_again_with_the_same_bytes():
    figure = training_curves(RUNS, HELD_OUT.metrics)
    assert to_bytes(figure, "svg") == to_bytes(figure, "svg")


def test_svg_carries_no_date_and_no_version():
    text = to_bytes(training_curves(RUNS[:1], HELD_OUT.metrics), "svg").decode()
    assert "dc:date" not in text
    assert "matplotlib.org" not in text


def test_refuses_no_runs_several_arms_other_ks_and_unknown_formats():
    with pytest.raises(BadValue, match="nothing to plot"):
        training_curves([], TRAINING)
    with pytest.raises(BadValue, match="one arm"):
        sampling_curves(RUNS, {"gsm8k": "GSM8K"})
    other = run("grpo", 1)
    other["sampling"]["gsm8k"]["before"] = curve(40.0) | {"k": [1, 2, 4, 16]}
    with pytest.raises(BadValue, match="16"):
        sampling_curves([RUNS[0], other], {"gsm8k": "GSM8K"})
    with pytest.raises(UnknownName, match="gif"):
        to_bytes(training_curves(RUNS[:1], HELD_OUT.metrics), "gif")


def contrast(*colours):
    """The ratio of luminances, as WCAG has it."""
    found = []
    for colour in colours:
        red, green, blue = (
            (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for c in to_rgb(colour)
        )
        found.append(0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)
    return max(found) / min(found)


def test_arms_differ_in_dash_or_marker_too():
    looks = [style(number) for number in range(15)]
    assert len({colour for colour, _, _ in looks}) == len(COLOURS)
    assert len({(str(dash), marker) for _, dash, marker in looks}) == 15


def test_lines_and_words_stand_out_on_light_and_on_dark_pages():
    for colour in COLOURS:  # of a line that is dashed and marked
        assert contrast(colour, PAPER) > 2
        assert contrast(DARK[colour], DARK[PAPER]) > 3
    assert min(contrast(INK, PAPER), contrast(DARK[INK], DARK[PAPER])) > 7
    light, dark = (TEMPLATES / "page.css").read_text().split(":root {")[1:]
    assert f"--paper: {PAPER}" in light
    assert f"--paper: {DARK[PAPER]}" in dark


def test_every_colour_of_a_figure_has_another_on_a_dark_page():
    many = [run(f"arm {number}", seed) for number in range(9) for seed in range(2)]
    for figure in (training_curves(many, TRAINING), sampling_curves(RUNS[:3], {"gsm8k": "G"})):
        text = to_bytes(figure, "svg").decode()
        drawn = set(re.findall(r"(?:fill|stroke): (#\w+)", text.partition("</style>")[2]))
        assert len(drawn) > 3
        for colour in drawn:
            for part in ("fill", "stroke"):
                assert f'[style*="{part}: {colour}"]{{{part}:{DARK[colour]}!important}}' in text
        # what has no colour of its own is black, on either page
        assert all("fill: " in words for words in re.findall(r"<text style=\"([^\"]*)", text))


def test_every_line_is_named_at_its_end():
    figure = training_curves(RUNS, TRAINING)
    for axes in figure.axes:
        assert {text.get_text(): text.xy for text in axes.texts} == {
            arm: tuple(line.get_xydata()[-1])
            for arm, line in zip(("grpo", "rft"), axes.lines, strict=True)
        }
        tops, bottoms = zip(
            *sorted(
                (text.get_window_extent().y1, text.get_window_extent().y0) for text in axes.texts
            ),
            strict=True,
        )
        assert all(top <= bottom for top, bottom in zip(tops, bottoms[1:], strict=False))
