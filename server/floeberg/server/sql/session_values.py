"""Functions whose value the session or the caller is: `current_schema()`, `current_user` and so on.

The engine would tell of itself. So each becomes a value in the statement's tree, before anything is
made of that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from floeberg.process.version import floeberg_version
from floeberg.server.sql.names import Session
from floeberg.server.sql.statements import Statement

# by what a column is called that has nothing but the value
_NAMES: dict[type[exp.Expr], str] = {
    exp.CurrentCatalog: "current_catalog",
    exp.CurrentDatabase: "current_database()",
    exp.CurrentSchema: "current_schema()",
    exp.CurrentUser: "current_user",
    exp.CurrentVersion: "version()",
    exp.SessionUser: "session_user",
}
# a name without brackets that the parser takes for a column, which none is called so
_BARE = "current_schema"


@dataclass(frozen=True, slots=True)
class _Values:
    session: Session
    principal: str | None

    def of(self, name: str) -> str | None:
        match name:
            case "current_catalog" | "current_database()":
                return self.session.catalog
            case "current_schema()" | "current_schema":
                return ".".join(self.session.schema)
            case "version()":
                return f"floeberg {floeberg_version()}"
            case _:
                return self.principal


def with_session_values(statement: Statement, session: Session, principal: str | None) -> Statement:
    """Return the statement with values for the functions that ask for session and caller.

    The schema is empty where the session has none, as listings have it, and the user is NULL where
    nobody is asked who they are.
    """
    if statement.tree is None or not _asks(statement.tree):
        return statement
    tree = statement.tree.copy()
    values = _Values(session, principal)
    for node in list(tree.walk()):
        name = _name(node)
        if name is None:
            continue
        text = values.of(name)
        # a bare literal would be something else behind ORDER BY
        value: exp.Expr = exp.cast(
            exp.null() if text is None else exp.Literal.string(text), "VARCHAR"
        )
        if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
            value = exp.alias_(value, name, quoted=True)
        node.replace(value)
    return replace(statement, tree=tree)


def _asks(tree: exp.Expr) -> bool:
    return any(_name(node) is not None for node in tree.walk())


def _name(node: exp.Expr) -> str | None:
    """Return what a node is called that is such a function, None for any other."""
    if isinstance(node, exp.Column):
        parts = node.parts
        if len(parts) == 1 and isinstance(parts[0], exp.Identifier) and not parts[0].quoted:
            return _BARE if str(parts[0].name).lower() == _BARE else None
        return None
    return _NAMES.get(type(node))
