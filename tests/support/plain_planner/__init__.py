"""The plain planner: one file after the other, as objects, by the rules as they are written.

What floeberg's own planner, which works on whole columns, must give the same answers as.
"""

from tests.support.plain_planner.planner import PlainPlan, comparable, plan_plainly
from tests.support.plain_planner.pruning import FileFilter

__all__ = ["FileFilter", "PlainPlan", "comparable", "plan_plainly"]
