"""One frozen configuration a process, from a file, the environment and flags.

A configuration is a frozen dataclass whose fields are made with `option`. The file is TOML, or JSON
where its name ends in `.json`. A value has one name:
`lease_seconds` in the file is `FLOEBERG_LEASE_SECONDS` in the environment and `--lease-seconds` as
a flag. A flag wins over the environment, the environment over the file, the file over the default.
"""

from __future__ import annotations

import argparse
import json
import tomllib
import types
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from floeberg.protocol.errors import BadConfig
from floeberg.protocol.suggestions import nearest

ENVIRONMENT_PREFIX = "FLOEBERG_"

C = TypeVar("C")


def option(
    default: Any = MISSING,
    doc: str = "",
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    secret: bool = False,
) -> Any:
    """Return a dataclass field that is a configuration value.

    Types that are read: str, int, float, bool, Path, a Literal of strings, any of these or None,
    `tuple[str, ...]`, `Mapping[str, str]`, and `Mapping[str, object]` for a table that only the
    file can hold. `doc` is what the configuration page says. A `secret` has no flag, since other
    users of a machine see those, and is left out of the repr.
    """
    metadata = {"doc": doc, "minimum": minimum, "maximum": maximum, "secret": secret}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata, repr=not secret)
    # typed as Any, so that the field's own annotation is what type checkers see
    return field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True)
class Option:
    """What there is to know of one configuration value; `default` is MISSING where it must be
    given.
    """

    name: str
    type: Any
    default: object
    doc: str
    minimum: float | None
    maximum: float | None
    secret: bool

    @property
    def environment(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.upper()

    @property
    def flag(self) -> str | None:
        if self.secret or self.is_table:
            return None
        return "--" + self.name.replace("_", "-")

    @property
    def is_table(self) -> bool:
        """Whether it is a nested table, which only the file can hold."""
        return get_origin(self.type) is Mapping and get_args(self.type)[1] is object

    @property
    def is_many(self) -> bool:
        """Whether it holds several values; its flag may then be repeated."""
        return get_origin(self.type) in (tuple, Mapping)


def options_of(cls: type[Any]) -> tuple[Option, ...]:
    """Return the configuration values of a dataclass, in the order of its fields."""
    hints = get_type_hints(cls)
    return tuple(
        Option(
            f.name,
            _plain(hints[f.name]),
            _default_of(f),
            f.metadata["doc"],
            f.metadata["minimum"],
            f.metadata["maximum"],
            f.metadata["secret"],
        )
        for f in fields(cls)
        if "doc" in f.metadata
    )


def load_config(
    cls: type[C],
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> C:
    """Return the configuration of one process.

    `flags` holds values by name, as text or already of their type; None is "not given". Raises
    `BadConfig`, which names the key and where it was given: for an unknown key (with the nearest
    known one), a value that doesn't read, and what the class itself checks.

    An unknown `FLOEBERG_…` variable is an error only where it looks like a misspelt key: the
    environment is shared, with the client's own variables and with what Kubernetes sets.
    """
    known = {o.name: o for o in options_of(cls)}
    values: dict[str, object] = {}
    for where, given in (
        (str(file), _read_file(file)),
        ("the environment", _from_environment(known, environ or {})),
        ("the command line", {k: v for k, v in (flags or {}).items() if v is not None}),
    ):
        for name, raw in given.items():
            if name not in known:
                raise BadConfig(f"{_unknown(name, known)} (in {where})")
            values[name] = _read(known[name], raw, where)
    for name, o in known.items():
        if name not in values and o.default is MISSING:
            given_by = " or ".join(filter(None, (o.flag, o.environment)))
            raise BadConfig(f"{name!r} must be given: {given_by}; {o.doc}")
    return cls(**values)


def config_from_command_line(
    cls: type[C], argv: Sequence[str], environ: Mapping[str, str], *, program: str, summary: str
) -> C:
    """Return the configuration that a command line asks for; `--config FILE` names the file.

    Raises `BadConfig` as `load_config` does, and `SystemExit` for `--help` and for flags that are
    no options at all.
    """
    parser = argparse.ArgumentParser(
        prog=program,
        description=summary,
        epilog="Each value may also stand in the file, or in the environment: --drain-seconds is"
        " drain_seconds there, and FLOEBERG_DRAIN_SECONDS here.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="A file with these keys: TOML, or *.json."
    )
    for o in options_of(cls):
        if o.flag is None:
            continue
        text = _help(o).replace("%", "%%")
        if o.type is bool:
            parser.add_argument(
                o.flag, dest=o.name, action=argparse.BooleanOptionalAction, default=None, help=text
            )
        else:
            parser.add_argument(
                o.flag,
                dest=o.name,
                action="append" if o.is_many else "store",
                metavar=_metavar(o),
                default=None,
                help=text,
            )
    flags, rest = parser.parse_known_args(argv)
    if rest:
        known = {o.name: o for o in options_of(cls)}
        name = rest[0].lstrip("-").partition("=")[0].replace("-", "_")
        if name in known:
            variable = known[name].environment
            raise BadConfig(
                f"{name!r} is no flag: it is for the file"
                + (f", or for the variable {variable}" if known[name].secret else "")
            )
        raise BadConfig(f"{_unknown(name, known)} (in the command line)")
    given = vars(flags)
    file = given.pop("config") or (
        Path(environ["FLOEBERG_CONFIG"]) if environ.get("FLOEBERG_CONFIG") else None
    )
    return load_config(cls, file=file, environ=environ, flags=given)


def options_table(cls: type[Any], without: Container[str] = ()) -> str:
    """Return the Markdown table of a configuration's keys, for the documentation."""
    rows = ["| key | default | what it is |", "| --- | --- | --- |"]
    for o in options_of(cls):
        if o.name in without:
            continue
        names = f"`{o.name}`"
        if o.flag is None:
            names += " (file and environment)" if o.secret else " (file only)"
        rows.append(f"| {names} | {_shown(o)} | {o.doc} |".replace("\n", " "))
    return "\n".join(rows) + "\n"


# --- where values come from ----------------------------------------------------------------------


def _read_file(file: Path | None) -> Mapping[str, object]:
    if file is None:
        return {}
    try:
        text = file.read_text(encoding="utf-8")
        parsed = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except OSError as exc:
        raise BadConfig(f"configuration file {file} cannot be read: {exc.strerror}") from exc
    except ValueError as exc:  # of both parsers, and of the decoding
        kind = "JSON" if file.suffix == ".json" else "TOML"
        raise BadConfig(f"configuration file {file} is not {kind}: {exc}") from exc
    if not isinstance(parsed, dict):
        raise BadConfig(f"configuration file {file} is not a table of keys")
    return parsed


def _from_environment(known: Mapping[str, Option], environ: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for variable, raw in environ.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable == "FLOEBERG_CONFIG":
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name in known and not raw.startswith("tcp://"):
            found[name] = _split(known[name], raw)
        elif nearest(name, known, n=1, cutoff=0.85) and name not in known:
            raise BadConfig(f"{_unknown(name, known)} (variable {variable} in the environment)")
    return found


def _split(o: Option, raw: str) -> object:
    """Return the values of a variable: a JSON list, or text with commas between the values."""
    if not o.is_many:
        return raw
    if raw.lstrip().startswith("["):
        try:
            return json.loads(raw)
        except ValueError:
            raise BadConfig(f"{o.environment} starts like a JSON list, and is none") from None
    return [part.strip() for part in raw.split(",") if part.strip()]


# --- reading a value -----------------------------------------------------------------------------


def _read(o: Option, raw: object, where: str) -> object:
    try:
        value = _of_type(o.type, raw)
    except (ValueError, TypeError) as exc:
        # a secret must not be repeated in the message
        shown = "" if o.secret else f" {raw!r}"
        raise BadConfig(f"{o.name!r} in {where}:{shown} {exc}") from None
    if o.minimum is not None and isinstance(value, int | float) and value < o.minimum:
        raise BadConfig(f"{o.name!r} in {where}: {value} is less than {o.minimum:g}")
    if o.maximum is not None and isinstance(value, int | float) and value > o.maximum:
        raise BadConfig(f"{o.name!r} in {where}: {value} is more than {o.maximum:.15g}")
    return value


def _of_type(kind: Any, raw: object) -> object:
    """Return `raw` as a `kind`; raises `ValueError` that says what is wanted."""
    origin = get_origin(kind)
    if origin is Literal:
        if raw not in get_args(kind):
            raise ValueError(f"is none of {', '.join(get_args(kind))}")
        return raw
    if origin is tuple:
        items = [raw] if isinstance(raw, str) else raw
        if not isinstance(items, list | tuple) or not all(isinstance(i, str) for i in items):
            raise ValueError("is not a list of texts")
        return tuple(items)
    if origin is Mapping:
        if isinstance(raw, Mapping):
            if get_args(kind)[1] is str and not all(isinstance(v, str) for v in raw.values()):
                raise ValueError("is not a table of texts")
            return dict(raw)
        if get_args(kind)[1] is object:
            raise ValueError("is not a table")
        return dict(_pair(item) for item in _texts(raw))
    if isinstance(raw, bool) and kind is not bool:
        raise ValueError(f"is not {_kind_name(kind)}")
    if kind is bool:
        return _boolean(raw)
    if kind is Path and isinstance(raw, str | Path):
        return Path(raw).expanduser()
    if kind is str and isinstance(raw, str):
        return raw
    if kind in (int, float) and isinstance(raw, str | int | float):
        if kind is int and isinstance(raw, float):
            raise ValueError("is not a whole number")
        try:
            number = kind(raw)
        except ValueError:
            raise ValueError(f"is not {_kind_name(kind)}") from None
        if not isfinite(number):  # NaN would pass every bound
            raise ValueError("is not finite")
        return number
    raise ValueError(f"is not {_kind_name(kind)}")


def _boolean(raw: object) -> bool:
    match raw.strip().lower() if isinstance(raw, str) else raw:
        case True | "true" | "yes" | "on" | "1":
            return True
        case False | "false" | "no" | "off" | "0":
            return False
        case _:
            raise ValueError("is neither true nor false")


def _texts(raw: object) -> Iterator[str]:
    items = [raw] if isinstance(raw, str) else raw
    if not isinstance(items, list | tuple):
        raise ValueError("is not a list of texts")
    for item in items:
        if not isinstance(item, str):
            raise ValueError("is not a list of texts")
        yield item


def _pair(item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not equals or not key:
        raise ValueError(f"{item!r} is not written KEY=VALUE")
    return key, value


def _plain(hint: Any) -> Any:
    """Return the type without its None."""
    if get_origin(hint) in (Union, types.UnionType):
        (inner,) = [a for a in get_args(hint) if a is not type(None)]
        return inner
    return hint


def _default_of(f: Field[Any]) -> object:
    return f.default_factory() if f.default_factory is not MISSING else f.default


def _kind_name(kind: Any) -> str:
    return {int: "a whole number", float: "a number", str: "text", Path: "a path"}.get(
        kind, str(kind)
    )


def _metavar(o: Option) -> str:
    if get_origin(o.type) is Literal:
        return "|".join(get_args(o.type))
    if get_origin(o.type) is Mapping:
        return "OLD=NEW"
    return {int: "N", float: "N", Path: "PATH"}.get(o.type, "TEXT")


def _help(o: Option) -> str:
    if o.default in (MISSING, None, (), {}):
        return o.doc
    return f"{o.doc} [default: {_shown(o).strip('`')}]"


def _shown(o: Option) -> str:
    match o.default:
        case _ if o.default is MISSING:
            return "must be given"
        case None | () | {}:
            return "none"
        case bool():
            return f"`{str(o.default).lower()}`"
        case tuple():
            return f"`{', '.join(map(str, o.default))}`"
        case _:
            return f"`{o.default}`"


def _unknown(name: str, known: Mapping[str, Option]) -> str:
    near = nearest(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"unknown key {name!r}: {hint}"
