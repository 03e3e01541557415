"""A name that nobody knows is answered with a few that are known, however many there are."""

import re

from hypothesis import given
from hypothesis import strategies as st

from eval.errors import MAX_LISTED, UnknownName

NAMES = st.text("abcdefgh_", min_size=1, max_size=12)


@given(NAMES, st.sets(NAMES, min_size=1, max_size=60))
def test_at_most_a_dozen_names_are_shown_all_of_them_known(name, known):
    text = str(UnknownName("field", name, known - {name} or {"other"}))
    shown = re.findall(r"[a-z_]+", text.split(":", 2)[2].replace("did you mean", ""))
    shown = {*shown} - {"known", "or", "the", "nearest", "of", "are"}
    assert 1 <= len(shown) <= MAX_LISTED
    assert shown <= known | {"other"}


@given(NAMES, st.sets(NAMES, min_size=1, max_size=60))
def test_a_name_with_one_letter_too_many_leads_to_what_was_meant(extra, known):
    meant = max(known, key=lambda one: (len(one), one))
    typed = meant + extra[0]
    if len(meant) > 4 and typed not in known:
        assert re.search(rf"\b{meant}\b", str(UnknownName("field", typed, {meant})))


@given(NAMES.filter(lambda name: len(name) > 2), st.sets(NAMES, max_size=60))
def test_case_and_hyphens_do_not_matter(meant, others):
    known = {meant, *(name for name in others if name.replace("_", "-") != meant)}
    for typed in (meant.upper(), meant.replace("_", "-"), meant.title()):
        if typed not in known:
            assert re.search(rf"\b{meant}\b", str(UnknownName("paper", typed, known)))
