"""Shares of the long tests: each test is in one of them, whatever their number."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

NODES = [f"tests/e2e/test_{file}.py::test_{name}" for file in "abcd" for name in range(10)]


@pytest.fixture(scope="module")
def kept(request):
    """Return the names that a share keeps of `NODES`, every second of which is a long test."""
    home = next(
        plugin
        for plugin in request.config.pluginmanager.get_plugins()
        if hasattr(plugin, "pytest_collection_modifyitems") and hasattr(plugin, "place_of")
    )

    def collect(share):
        items = [
            SimpleNamespace(
                nodeid=node,
                path=SimpleNamespace(name=node.split("::")[0].split("/")[-1]),
                get_closest_marker=({"long": True} if place % 2 == 0 else {}).get,
            )
            for place, node in enumerate(NODES)
        ]
        config = SimpleNamespace(getoption={"--long-share": share}.get, hook=Mock())
        home.pytest_collection_modifyitems(config, items)
        return [item.nodeid for item in items]

    return collect


@pytest.mark.parametrize("shares", range(1, 13))
def test_every_long_test_is_in_one_share_and_others_are_in_all(kept, shares):
    of_shares = [kept(f"{number}/{shares}") for number in range(1, shares + 1)]
    for place, node in enumerate(NODES):
        held = sum(node in names for names in of_shares)
        assert held == (1 if place % 2 == 0 else shares)


def test_without_a_share_all_tests_are_kept(kept):
    assert sorted(kept(None)) == sorted(NODES)
