"""The pages of profiles in a browser: sorted by a heading, and whole on a phone."""

import pytest
from profile_records import made, record_all

from core.pages.profiles import write_profile

CUT = "return document.documentElement.scrollWidth"
NAMES = """
return [...document.querySelectorAll("table.sortable tbody th")].map((cell) => cell.textContent)
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The folder of the pages of three algorithms: gspo is below GRPO, rloo as good, dapo above."""
    folder = tmp_path_factory.mktemp("profiles")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_ROOT", str(folder))
        patch.setattr("core.profiles.scores.EFFECTS", {})
        records = record_all()
        made("rloo", 0)
        made("gspo", -10)
        page = write_profile(records["dapo"], records["grpo"])
    return page.parent.parent


def press(browser, place):
    browser.find_elements("css selector", "table.sortable thead button")[place].click()
    return browser.execute_script(NAMES)


def test_a_heading_sorts_the_table_and_sorts_it_the_other_way_again(browser, pages):
    browser.get((pages / "profile.html").as_uri())
    assert browser.execute_script(NAMES) == ["dapo", "rloo", "gspo"]
    assert press(browser, 2) == ["dapo", "rloo", "gspo"]
    assert press(browser, 2) == ["gspo", "rloo", "dapo"]
    assert press(browser, 0) == ["rloo", "gspo", "dapo"]
    assert press(browser, 0) == ["dapo", "gspo", "rloo"]


@pytest.mark.parametrize("width", [400, 1000])
@pytest.mark.parametrize("name", ["profile.html", "profile/dapo.html"])
def test_no_page_is_wider_than_the_screen(browser, pages, name, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get((pages / name).as_uri())
    assert browser.execute_script(CUT) <= width
