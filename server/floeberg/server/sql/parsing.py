"""From SQL text to a tree: one statement, of a size that is safe to work on.

The dialect is DuckDB's. Reading recurses once for each bracket that is open, and so do the steps
that follow, so that length, brackets and depth are bounded here, before anything else is done with
a statement. Reading and checking one takes 0.15 ms for the shortest, and about 1 ms for each 150
characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects import DuckDB
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.expressions.core import Expression as Node
from sqlglot.tokenizer_core import Token, TokenType

from floeberg.protocol.errors import BadSql, ReadOnly, UnsupportedSql
from floeberg.protocol.suggestions import cut, quoted

MAX_CHARACTERS = 1 << 20
MAX_TOKENS = 50_000
MAX_OPEN = 25
"""How many brackets and CASEs may be open at once: a stack of a thousand calls reads about 38."""
MAX_DEPTH = 100
"""How deep the tree may be; a chain of one operator, as `a AND b AND c`, counts as one level."""
MAX_QUERIES = 300
"""How many SELECTs and VALUES a statement may be made of."""

DIALECT = "duckdb"

_EXPLAIN = re.compile(
    r"(?P<before>(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*)EXPLAIN\b\s*(?P<analyze>ANALYZE\b)?",
    re.IGNORECASE | re.DOTALL,
)
# a text or a name in quotes, a word or a number, signs in a row
_WORDS = re.compile(r"""'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"|[\w.]+|[^\w.\s'"]+""")
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_FIRST_WORDS = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE", "SHOW", "DESCRIBE", "DESC"})
_CHANGING = frozenset(
    {
        "ALTER",
        "ANALYZE",
        "BEGIN",
        "CALL",
        "CHECKPOINT",
        "COMMENT",
        "COMMIT",
        "COPY",
        "CREATE",
        "DEALLOCATE",
        "DELETE",
        "DROP",
        "EXECUTE",
        "EXPORT",
        "GRANT",
        "IMPORT",
        "INSERT",
        "KILL",
        "LOCK",
        "MERGE",
        "OPTIMIZE",
        "PRAGMA",
        "PREPARE",
        "REFRESH",
        "REINDEX",
        "RENAME",
        "REPLACE",
        "RESET",
        "REVOKE",
        "ROLLBACK",
        "SAVEPOINT",
        "SET",
        "START",
        "TRUNCATE",
        "UNCACHE",
        "UNDO",
        "UPDATE",
        "UPSERT",
        "USE",
        "VACUUM",
    }
)
_SETTINGS = frozenset({"SET", "RESET", "USE", "PRAGMA"})
# FORCE INSTALL is a statement too
_EXTENSIONS = frozenset({"FORCE", "INSTALL", "LOAD"})
_DATABASES = frozenset({"ATTACH", "DETACH"})
# CATALOGS is another word for DATABASES
_LISTS = ("SCHEMAS", "DATABASES", "CATALOGS")
_SHOWN = (["TABLES"], ["ALL"], *([word] for word in _LISTS))
_UNSERVED = {
    "PIVOT": "write PIVOT behind FROM, as in FROM t PIVOT (…), with the values of ON in IN (…)",
    "UNPIVOT": "write UNPIVOT behind FROM, as in FROM t UNPIVOT (…)",
    "SUMMARIZE": "select the aggregates that you need, as in SELECT min(a), max(a) FROM t",
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """One statement as a tree, which nobody changes; `?` is `$1`, `$2`, … in it.

    `explained` says whether EXPLAIN stood before it, `analyzed` whether EXPLAIN ANALYZE did.
    """

    tree: Node
    explained: bool
    analyzed: bool


def parse_sql(text: str) -> Parsed:
    """Return the only statement in `text`, a semicolon behind it or not.

    Raises `BadSql`, with line and column where they are known, for text that is not SQL, for none
    and for several statements; `ReadOnly` for a statement that is known to change something; and
    `UnsupportedSql` for one that is too long or nested too deeply.

    >>> parse_sql("explain select 1;").tree.sql()
    'SELECT 1'
    """
    if len(text) > MAX_CHARACTERS:
        raise UnsupportedSql(
            f"the statement has {len(text):,} characters, and may have {MAX_CHARACTERS:,}; join"
            " with a table rather than write so many values"
        )
    if "\x00" in text:
        raise BadSql("the statement holds a NUL character; remove it")
    explain = _EXPLAIN.match(text)
    if explain is not None:
        # blanks take its place, so that lines and columns stay
        blanks = re.sub(r"[^\n]", " ", explain.group())
        text = blanks + text[explain.end() :]
    _check_words(text)
    tokens = _tokens(text)
    _check_first_words(tokens)
    _check_size(tokens)
    tokens = _numbered(tokens)
    tree = _tree(tokens, text)
    _check_tree(tree)
    analyzed = explain is not None and explain.group("analyze") is not None
    return Parsed(tree, explain is not None, analyzed)


def to_sql(tree: Node) -> str:
    """Return the tree as DuckDB's SQL. Comments are left out: they mean nothing, and a client's
    text in them must not end them.

    Raises `UnsupportedSql` where the tree is too deep to be written.
    """
    try:
        return tree.sql(dialect=DIALECT, comments=False, unsupported_level=ErrorLevel.IGNORE)
    except RecursionError:
        raise _too_deep() from None


def _check_words(text: str) -> None:
    """Refuse what has far too many words and signs before it is cut into them, which is slow. Signs
    in a row count as one; words count in comments and between $$ too."""
    if len(text) > MAX_TOKENS and sum(1 for _ in _WORDS.finditer(text)) > MAX_TOKENS:
        raise _too_long(f"more than {MAX_TOKENS:,} words and signs")


def _too_long(has: str) -> UnsupportedSql:
    return UnsupportedSql(
        f"the statement has {has}, and may have {MAX_TOKENS:,}; join with a table rather than write"
        " so many values"
    )


def _tokens(text: str) -> list[Token]:
    tokens: list[Token]
    try:
        tokens = DuckDB().tokenize(text)
        return tokens
    except TokenError as exc:
        # sqlglot says where the quote opens in the error behind
        found = re.search(r"Missing (\S+) from (\d+):(\d+)", str(exc.__cause__ or exc))
        if found is None:
            raise BadSql("a quote or comment is not closed") from None
        mark, line, column = found.groups()
        raise BadSql(f"{mark} is not closed", int(line), int(column) + 1) from None


def _check_first_words(tokens: list[Token]) -> None:
    words = [t for t in tokens if t.token_type is not TokenType.SEMICOLON][:2]
    first = words[0] if words else None
    if first is None:
        raise BadSql("there is no statement; send one, such as SELECT 1")
    if first.token_type is TokenType.L_PAREN:
        return
    word = first.text.upper()
    if word in _UNSERVED:
        raise UnsupportedSql(f"{word} as a statement is not served; {_UNSERVED[word]}")
    if word in _SETTINGS:
        raise UnsupportedSql(
            f"{word} is not served: catalog, schema, ref and timezone are options of the session,"
            " which the client sets; other settings are fixed"
        )
    if word in _EXTENSIONS:
        raise UnsupportedSql(
            f"{word} is not served: the engine has the extensions that are built in, and no others"
        )
    if word in _DATABASES:
        raise UnsupportedSql(
            f"{word} is not served: the tables are those of the catalogs that the server has been"
            " given, which SHOW DATABASES shows"
        )
    if word in _CHANGING:
        raise ReadOnly(word)
    if word not in _FIRST_WORDS:
        raise BadSql(
            f"a statement starts with SELECT, WITH, VALUES, FROM, EXPLAIN, SHOW or DESCRIBE, and"
            f" not with {quoted(first.text)}",
            first.line,
            _column(first),
        )
    if word == "SHOW" and [t.text.upper() for t in words[1:]] not in _SHOWN:
        raise UnsupportedSql(
            "SHOW TABLES, SHOW ALL TABLES, SHOW SCHEMAS and SHOW DATABASES are served, other forms"
            " of SHOW are not; DESCRIBE shows a table's columns, and information_schema.columns"
            " those of all tables"
        )


def _check_size(tokens: list[Token]) -> None:
    if len(tokens) > MAX_TOKENS:
        raise _too_long(f"{len(tokens):,} words and signs")
    ended = False
    is_open = 0
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.SEMICOLON:
            ended = True
            continue
        if ended:
            raise BadSql(
                "there is a second statement; send one at a time", token.line, _column(token)
            )
        if kind in _OPENING:
            is_open += 1
            if is_open > MAX_OPEN:
                raise UnsupportedSql(
                    f"line {token.line}, column {_column(token)}: more than {MAX_OPEN} brackets or"
                    " CASEs are open; use WITH to give the inner parts names"
                )
        elif kind in _CLOSING:
            is_open = max(0, is_open - 1)


def _numbered(tokens: list[Token]) -> list[Token]:
    """Return the tokens with `?` as `$1`, `$2`, … in their order, which a tree does not keep."""
    numbered: list[Token] = []
    count = 0
    for token in tokens:
        # `?::int` is a sign of its own to sqlglot
        if token.token_type in (TokenType.PLACEHOLDER, TokenType.QDCOLON):
            count += 1
            place = (token.line, token.col, token.start, token.end)
            numbered.append(Token(TokenType.PARAMETER, "$", *place))
            numbered.append(Token(TokenType.NUMBER, str(count), *place))
            if token.token_type is TokenType.QDCOLON:
                numbered.append(Token(TokenType.DCOLON, "::", *place))
        else:
            numbered.append(token)
    if count and any(t.token_type is TokenType.PARAMETER for t in tokens):
        raise BadSql("parameters are written either ? or $1, $2, …, and not both ways")
    return numbered


def _column(token: Token) -> int:
    """Return the column of a token's first character, from 1; sqlglot has that of its last."""
    return max(1, token.col - (token.end - token.start))


def _tree(tokens: list[Token], text: str) -> Node:
    tokens = [t for t in tokens if t.token_type is not TokenType.SEMICOLON]
    if tokens[0].token_type is TokenType.SHOW:
        listed = _listed(tokens[1:])
        if listed is not None:
            return listed
        tokens = [_as_from(token) for token in tokens]
    try:
        found = DuckDB().parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    except ParseError as exc:
        raise _bad_sql(exc) from None
    except RecursionError:
        raise _too_deep() from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as exc:
        # sqlglot's own way to fail on some texts that aren't SQL
        raise BadSql(f"the statement can't be read ({type(exc).__name__})") from None
    tree: Node | None = found[0] if len(found) == 1 else None
    if tree is None or (isinstance(tree, exp.Select) and not any(tree.args.values())):
        raise BadSql("there is no statement; send one, such as SELECT 1")
    return tree


def _listed(tokens: list[Token]) -> exp.Show | None:
    """Return SHOW SCHEMAS, of one catalog or of all, and SHOW DATABASES, which sqlglot does not
    know; None for another SHOW. `tokens` follow the SHOW."""
    word, *rest = tokens
    if word.text.upper() not in _LISTS:
        return None
    shown = exp.Show(this=word.text.upper())
    if rest and word.text.upper() == "SCHEMAS" and _as_from(rest[0]).token_type is TokenType.FROM:
        if len(rest) != 2:
            raise BadSql("SHOW SCHEMAS FROM takes one name, that of a catalog")
        name = exp.to_identifier(rest[1].text, quoted=rest[1].token_type is TokenType.IDENTIFIER)
        shown.set("from_", exp.Table(this=name))
    elif rest:
        raise BadSql(
            f"nothing follows {word.text.upper()}, but {quoted(rest[0].text)} does",
            rest[0].line,
            _column(rest[0]),
        )
    return shown


def _as_from(token: Token) -> Token:
    """Return FROM for an IN, which others write behind SHOW TABLES."""
    if token.token_type is not TokenType.IN:
        return token
    return Token(TokenType.FROM, "FROM", token.line, token.col, token.start, token.end)


def _bad_sql(exc: ParseError) -> BadSql:
    if not exc.errors:
        return BadSql(cut(str(exc).splitlines()[0], 200))
    error = exc.errors[0]
    near = error.get("highlight") or ""
    line, last = error.get("line"), error.get("col")
    if not isinstance(line, int) or not isinstance(last, int):
        return BadSql(f"syntax error at {quoted(near)}")
    why = str(error.get("description") or "")
    if why.startswith("Expecting "):
        why = f"expected {cut(why.removeprefix('Expecting '), 20)!r} at {quoted(near)}"
    elif why.startswith("Required keyword"):
        why = f"something is missing at {quoted(near)}"
    else:
        why = f"syntax error at {quoted(near)}"
    return BadSql(why, line, max(1, last - len(near) + 1))


def _too_deep() -> UnsupportedSql:
    return UnsupportedSql(
        "the statement is nested too deeply; use WITH to give the inner parts names"
    )


def _check_tree(tree: Node) -> None:
    queries = 0
    waiting: list[tuple[Node, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise _too_deep()
        queries += isinstance(node, exp.Select | exp.Values)
        # a chain leans to the left, and is worked on without recursion
        is_chain = isinstance(node, exp.Binary | exp.SetOperation) and not isinstance(node, exp.Dot)
        for key, child in node.args.items():
            children = child if isinstance(child, list) else [child]
            deeper = depth + (not (is_chain and key == "this"))
            waiting.extend((c, deeper) for c in children if isinstance(c, Node))
    if queries > MAX_QUERIES:
        raise UnsupportedSql(
            f"the statement is made of {queries:,} queries, and may be of {MAX_QUERIES}; send it in"
            " parts"
        )
