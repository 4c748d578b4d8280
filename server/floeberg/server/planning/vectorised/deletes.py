"""Find the deletes that apply to the data files of a segment, all of them at once.

The spec's scope rules, in short: a position delete or vector applies to files that are not younger
than it, an equality delete to files that are older; both within their partition, except that an
equality delete under an unpartitioned spec is global, and a vector names its one file. Where there
is a vector, position deletes are left out: it holds them all. Spec: "Scan Planning".

Deletes are sorted once, so that those which apply to a file are the end of a run: by sequence
number, within all that are global, that are in its partition, or that name it. A plan's segments
may be many and small: what is made for each is little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

import numpy as np

from floeberg.protocol.errors import CorruptDeletes
from floeberg.protocol.files import Content, FileFormat
from floeberg.protocol.manifests import Segment
from floeberg.protocol.manifests import segment as s
from floeberg.protocol.manifests.columns import Int64s
from floeberg.protocol.partitioning import PartitionSpec
from floeberg.protocol.planned import DeleteFiles, References, ranges_as_places
from floeberg.protocol.schema import Schema
from floeberg.server.planning.vectorised.delete_columns import DeleteColumns, DeletePartitions
from floeberg.server.planning.vectorised.equality_bounds import EqualityBounds
from floeberg.server.planning.vectorised.ordered import Mask
from floeberg.server.planning.vectorised.path_ranges import PathRanges
from floeberg.server.planning.vectorised.suffixes import Suffixes

_PUFFIN: Final = s.FORMATS.index(FileFormat.PUFFIN)


class SegmentDeletes:
    """The deletes of a plan, indexed for segments of data files. Safe to share between threads."""

    def __init__(
        self,
        deletes: DeleteFiles,
        specs: Callable[[int], PartitionSpec],
        schema: Schema | None = None,
        *,
        may_be_imported: bool = False,
        most_pairs: int = 4_000_000,
    ) -> None:
        """`specs` gives a partition spec by its id.

        With a `schema`, equality deletes are ruled out by the statistics of its columns;
        `may_be_imported` is explained by `decode_bounds`. In a segment with more than `most_pairs`
        of a file and a delete that bounds, on paths or of columns, have to decide on, they are not
        asked, so that a plan of very many keeps to its memory. Raises `CorruptDeletes` for a second
        vector of one data file.
        """
        self._deletes = deletes
        self._most_pairs = most_pairs
        if not len(deletes):
            return
        columns = DeleteColumns(deletes)
        self._paths, self._sequences = columns.paths, columns.sequences
        self._partitions = DeletePartitions(deletes, specs)
        self._codes = self._partitions.codes
        is_equality = columns.contents == Content.EQUALITY_DELETES
        is_vector = ~is_equality & (columns.formats == _PUFFIN)
        is_position = ~is_equality & ~is_vector
        names_file = columns.path_ids >= 0
        is_global = is_equality & self._partitions.are_global
        ranges = columns.path_ranges(is_position & ~names_file)
        is_bounded = np.zeros(len(deletes), dtype=np.bool_)
        is_bounded[list(ranges)] = True

        self._parts: list[Int64s] = []
        self._length = 0
        self._vector_at = self._add_vectors(
            np.flatnonzero(is_vector & names_file), columns.path_ids
        )
        everywhere = np.zeros(len(deletes), dtype=np.int64)
        self._global = self._add(is_global, everywhere, strict=True)
        self._equality = self._add(is_equality & ~is_global, self._codes, strict=True)
        self._named = self._add(is_position & names_file, columns.path_ids)
        self._unbounded = self._add(is_position & ~names_file & ~is_bounded, self._codes)
        self._bounded_first = self._length
        self._bounded = self._add(is_bounded, self._codes)
        bounded = self._bounded.numbers
        self._ranges = PathRanges([ranges[i] for i in bounded.tolist()], self._codes[bounded])
        self._numbers = np.concatenate(self._parts)
        self._all_global = len(self._global) == self._length
        self._equality_bounds = (
            None
            if schema is None
            else EqualityBounds(
                deletes, np.flatnonzero(is_equality), schema, may_be_imported=may_be_imported
            )
        )

    def _add(self, chosen: Mask, groups: Int64s, *, strict: bool = False) -> Suffixes:
        numbers = np.flatnonzero(chosen)
        found = Suffixes(
            numbers, groups[numbers], self._sequences[numbers], self._length, strict=strict
        )
        self._place(found.numbers)
        return found

    def _place(self, numbers: Int64s) -> int:
        first = self._length
        self._parts.append(numbers)
        self._length += len(numbers)
        return first

    def _add_vectors(self, numbers: Int64s, path_ids: Int64s) -> Int64s:
        """Return the place of each path's vector, -1 for none."""
        paths, first = np.unique(path_ids[numbers], return_index=True)
        found = np.full(len(self._paths), -1, dtype=np.int64)
        found[paths] = self._place(numbers) + first
        if len(paths) < len(numbers):
            again = int(np.setdiff1d(np.arange(len(numbers)), first)[0])
            before = int(found[path_ids[numbers[again]]])
            one, other = self._deletes.files(numbers[[before, again]])
            raise CorruptDeletes(
                f"data file {one.referenced_data_file} has two deletion vectors, in"
                f" {one.location} and {other.location}; a snapshot may have one"
            )
        return found

    def applying_to(self, segment: Segment, rows: Int64s) -> References:
        """Return the numbers, ascending, of the deletes that apply to each of `rows`.

        `segment` is of a data manifest, and `rows`, ascending, are those of its files that are
        kept. A list may have deletes of which no row is in its file, never lacks one that has any.
        Raises `CorruptDeletes` when a delete that names one of the files does not fit it: leaving
        it out would bring deleted rows back.
        """
        column = segment.numbers(s.SEQUENCE_NUMBER)
        if not len(self._deletes) or not len(rows) or column is None:
            return References.none(len(rows))
        sequences = column.values[rows].astype(np.int64)
        everywhere = np.zeros(len(rows), dtype=np.int64)
        lists = _Lists(self._numbers, len(rows))
        lists.add(self._global, everywhere, sequences)
        partitions = everywhere if self._all_global else self._partitions.find(segment, rows)
        lists.add(self._equality, partitions, sequences)
        if self._equality_bounds:
            lists.exclude(self._equality_bounds, segment, rows, self._most_pairs)
        if self._all_global:
            return lists.references()
        files = _Files(segment, rows, sequences, partitions)
        vectors, named = self._naming(files)
        lists.keep(*vectors)
        lists.keep(*named)
        has_vector = vectors[0] < vectors[1]
        lists.add(self._unbounded, partitions, sequences, unless=has_vector)
        if len(self._bounded):
            self._add_bounded(files, has_vector, lists)
        return lists.references()

    def _naming(self, files: _Files) -> tuple[_Ranges, _Ranges]:
        """Return the vector of each file, and position deletes that name it: a start and a stop.

        Where there is a vector, it has the positions of the others.
        """
        vectors, named = _no_ranges(len(files.rows)), _no_ranges(len(files.rows))
        locations = files.segment.strings(s.LOCATION)
        assert locations is not None
        places, paths = self._paths.find(locations, files.rows)
        if not len(places):
            return vectors, named
        at = self._vector_at[paths]
        has_vector = at >= 0
        with_vector, at = places[has_vector], at[has_vector]
        vectors[0][with_vector], vectors[1][with_vector] = at, at + 1
        rest, paths = places[~has_vector], paths[~has_vector]
        starts, stops = self._named.applying_to(paths, files.sequences[rest])
        named[0][rest], named[1][rest] = starts, stops
        owners = np.concatenate([with_vector, np.repeat(rest, stops - starts)])
        numbers = self._numbers[np.concatenate([at, ranges_as_places(starts, stops)])]
        is_elsewhere = self._codes[numbers] != files.partitions[owners]
        is_older = self._sequences[numbers] < files.sequences[owners]
        wrong = np.flatnonzero(is_elsewhere | is_older)
        if len(wrong):
            # the first file, and of it the first delete
            first = int(wrong[np.lexsort((numbers[wrong], owners[wrong]))[0]])
            elsewhere = bool(is_elsewhere[first])
            self._refuse(files, int(owners[first]), int(numbers[first]), elsewhere=elsewhere)
        return vectors, named

    def _refuse(self, files: _Files, place: int, number: int, *, elsewhere: bool) -> NoReturn:
        data = files.segment.entry(int(files.rows[place])).file
        (delete,) = self._deletes.files([number])
        if elsewhere:
            raise CorruptDeletes(
                f"delete file {delete.location} names data file {data.location}, which is in"
                " another partition"
            )
        raise CorruptDeletes(
            f"data file {data.location} has sequence number {data.data_sequence_number}, and its"
            f" deletion vector in {delete.location} the older {delete.data_sequence_number}"
        )

    def _add_bounded(self, files: _Files, has_vector: Mask, lists: _Lists) -> None:
        """Add the position deletes whose bounds on paths admit each file."""
        starts, stops = self._bounded.applying_to(files.partitions, files.sequences)
        starts = np.where(has_vector, stops, starts)
        locations, first = files.segment.strings(s.LOCATION), self._bounded_first
        assert locations is not None
        found = self._ranges.containing(
            locations, files.rows, starts - first, stops - first, self._most_pairs
        )
        if found is None:
            lists.keep(starts, stops)
        else:
            places, ranges = found
            lists.append(places, self._bounded.numbers[ranges])


class _Lists:
    """The lists of some files in the making."""

    def __init__(self, numbers: Int64s, rows: int) -> None:
        self._numbers = numbers
        self._shared = len(numbers)
        self._rows = rows
        self._ranges: list[_Ranges] = []

    def add(
        self, run: Suffixes, groups: Int64s, sequences: Int64s, unless: Mask | None = None
    ) -> None:
        """Add what applies of a run to files of its groups, `unless` they are exempt."""
        if len(run):
            starts, stops = run.applying_to(groups, sequences)
            if unless is not None:
                starts = np.where(unless, stops, starts)
            self.keep(starts, stops)

    def keep(self, starts: Int64s, stops: Int64s) -> None:
        if (starts < stops).any():
            self._ranges.append((starts, stops))

    def append(self, places: Int64s, numbers: Int64s) -> None:
        """Add pairs of a file's place, ascending, and a delete."""
        if not len(places):
            return
        counts = np.bincount(places, minlength=self._rows)
        stops = len(self._numbers) + np.cumsum(counts)
        self._ranges.append((stops - counts, stops))
        self._numbers = np.concatenate([self._numbers, numbers])

    def exclude(
        self, bounds: EqualityBounds, segment: Segment, rows: Int64s, most_pairs: int
    ) -> None:
        """Take out equality deletes, which all lists have so far, that bounds rule out."""
        if not self._ranges:
            return
        files = bounds.of(segment, rows)
        is_doubtful = files.doubtful()[self._numbers]
        if not is_doubtful.any():
            return
        starts, stops = self._stacked()
        before = np.zeros(len(is_doubtful) + 1, dtype=np.int64)
        np.cumsum(is_doubtful, out=before[1:])
        in_doubt = int((before[stops] - before[starts]).sum())
        if in_doubt > most_pairs:
            return
        owners, places = _pairs(before[starts], before[stops])
        places = np.flatnonzero(is_doubtful)[places]
        excluded = files.exclude(owners, self._numbers[places])
        is_changed = np.zeros(self._rows, dtype=np.bool_)
        is_changed[owners[excluded]] = True
        changed = np.flatnonzero(is_changed)
        if not len(changed) or int((stops - starts)[changed].sum()) > most_pairs:
            return
        total = int((stops - starts).sum())
        for range_starts, range_stops in self._ranges:
            range_starts[changed] = range_stops[changed]
        if in_doubt == total:
            is_kept = is_changed[owners] & ~excluded
        else:
            # pairs come in the same order, those that are in doubt among the others
            stays = ~excluded[is_changed[owners]]
            found, places = _pairs(starts[changed], stops[changed])
            owners, is_kept = changed[found], np.ones(len(found), dtype=np.bool_)
            is_kept[is_doubtful[places]] = stays
        self.append(owners[is_kept], self._numbers[places[is_kept]])

    def _stacked(self) -> _Ranges:
        starts, stops = (np.stack(column, axis=1) for column in zip(*self._ranges, strict=True))
        return starts, stops

    def references(self) -> References:
        if not self._ranges:
            return References.none(self._rows)
        starts, stops = self._stacked()
        found = References(starts, stops, self._numbers)
        # thousands of small segments must not have a copy of all numbers each
        is_shared = len(self._numbers) == self._shared
        if is_shared or int((stops - starts).sum()) > self._shared:
            return found
        return References.of_flat(*found.flat())


@dataclass(frozen=True, slots=True)
class _Files:
    """Rows of a segment, and of each its sequence number and partition, -1 for one unheard of."""

    segment: Segment
    rows: Int64s
    sequences: Int64s
    partitions: Int64s


_Ranges: TypeAlias = tuple[Int64s, Int64s]
"""A start and a stop for each of some files."""


def _pairs(starts: Int64s, stops: Int64s) -> tuple[Int64s, Int64s]:
    """Return each row's number, and each place in its ranges, which have the shape (rows, n)."""
    owners = np.repeat(np.arange(len(starts)), (stops - starts).sum(axis=1))
    return owners, ranges_as_places(starts.ravel(), stops.ravel())


def _no_ranges(rows: int) -> _Ranges:
    return np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
