"""A figure of the accuracy of what is chosen by the number of solutions, a panel a scorer."""
# pyright: basic
# (matplotlib leaves most of its types open)

from matplotlib import rc_context

from core.pages.scored_policies import Policy
from eval.tables.palette import STYLE, to_bytes
from eval.tables.plots import draw_mean, finish, grid, scale_by_two


def picture(policy: Policy) -> bytes:
    """Draw the accuracy of each way to choose by the number of solutions, a panel a scorer."""
    with rc_context(STYLE):
        figure, panels = grid(len(policy.scorers))
        for axes, judged in zip(panels, policy.scorers, strict=True):
            shown = [row for row in policy.rows if row.scorer in (None, judged.scorer)]
            for number, row in enumerate(shown):
                points = zip(policy.sizes, row.cells, strict=True)
                rows = [(n, cell.end, cell.low, cell.high) for n, cell in points]
                draw_mean(axes, row.way, rows, number)
            level = policy.greedy
            rows = [(n, level.end, level.low, level.high) for n in policy.sizes]
            draw_mean(axes, "greedy", rows, len(shown))
            scale_by_two(axes)
            axes.set_title(judged.scorer.name, fontsize=9, loc="left")
            axes.set_xlabel("solutions of a problem")
            axes.set_ylabel("accuracy (%)")
            axes.set_ylim(0, 100)
        finish(figure, panels)
    return to_bytes(figure, "svg")
