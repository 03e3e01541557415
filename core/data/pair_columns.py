"""Names of columns of pairs that reward models learn from."""

MARGIN = "margin"  # how far apart the rewards of a pair are to be
GRADE = "grade"  # how clear its preference is
