"""The WebAssembly that walkers are put together from; `manifests.kernel` does that.

Fragments read on from `$at` within a block that ends at `$end`; capital words in them stand for
what each use fills in. `$n` is the number that was read last.
"""

from __future__ import annotations

LONG = """
(local.set $n (i64.load8_u (local.get $at)))
(local.set $at (i32.add (local.get $at) (i32.const 1)))
(if (i64.ge_u (local.get $n) (i64.const 128)) (then
  (call $rest (local.get $at) (local.get $n)) (local.set $at) (local.set $n)))
(local.set $n (i64.xor (i64.shr_u (local.get $n) (i64.const 1))
  (i64.sub (i64.const 0) (i64.and (local.get $n) (i64.const 1)))))"""

BOOLEAN = """
(local.set $n (i64.extend_i32_u (i32.ne (i32.load8_u (local.get $at)) (i32.const 0))))
(local.set $at (i32.add (local.get $at) (i32.const 1)))"""

# $n bytes follow: check that they do (a size below zero is a huge one), and set $size
SIZED = """
(if (i32.gt_u (local.get $at) (local.get $end)) (then (unreachable)))
(if (i64.gt_u (local.get $n) (i64.extend_i32_u (i32.sub (local.get $end) (local.get $at))))
  (then (unreachable)))
(local.set $size (i32.wrap_i64 (local.get $n)))"""

STEP = """
(local.set $at (i32.add (local.get $at) (local.get $size)))"""

# $size of something begin at $n in their heap: make $n and $kept what a cell has of them
LONG_CELL = """
(if (i32.ge_u (local.get $size) (i32.const 0x1000000)) (then (unreachable)))
(local.set $n (i64.or (i64.shl (local.get $n) (i64.const 24))
  (i64.extend_i32_u (local.get $size))))
(local.set $kept (i32.const 9))"""

_KEPT = (
    """
(if (i32.le_u (local.get $size) (i32.const 8))
  (then
    (local.set $n (i64.load (local.get $at)))
    (if (i32.lt_u (local.get $size) (i32.const 8)) (then
      (local.set $n (i64.and (local.get $n) (i64.sub
        (i64.shl (i64.const 1) (i64.extend_i32_u (i32.shl (local.get $size) (i32.const 3))))
        (i64.const 1))))))
    SHORT
    (local.set $kept (local.get $size)))
  (else
    LONG
    (local.set $n (i64.add (local.get $heap_before)
      (i64.extend_i32_u (i32.sub (local.get $heap) (local.get $heap_base)))))"""
    + LONG_CELL
    + """
    (local.set $heap (i32.add (local.get $heap) (local.get $size)))))"""
)

KEPT_BYTES = (
    _KEPT.replace("SHORT", "").replace(
        "LONG", "(call $copy (local.get $heap) (local.get $at) (local.get $size))"
    )
    + STEP
)

KEPT_TEXT = (
    _KEPT.replace("SHORT", "(local.set $high (i64.or (local.get $high) (local.get $n)))").replace(
        "LONG",
        "(local.set $high (i64.or (local.get $high)"
        " (call $copy_text (local.get $heap) (local.get $at) (local.get $size))))",
    )
    + STEP
)

PATH = (
    """
(local.set $high (i64.or (local.get $high)
  (call $copy_text (local.get $paths) (local.get $at) (local.get $size))))
(local.set $paths (i32.add (local.get $paths) (local.get $size)))"""
    + STEP
)

ITEM = """
(i64.store (local.get $items) (local.get $n))
(local.set $items (i32.add (local.get $items) (i32.const 8)))"""

# text that is not read is still text: let the plain decoder judge what is not ASCII
ASCII = """
(call $ascii (local.get $at) (local.get $size))"""

# $n is a key: set $slot to its column in the map, mostly the one after the last
SLOT = """
(if (i64.ne (local.get $n) (i64.extend32_s (local.get $n))) (then (unreachable)))
(local.set $key (i32.wrap_i64 (local.get $n)))
(local.set $slot (i32.add (local.get $slot) (i32.const 1)))
(if (i32.or (i32.ge_u (local.get $slot) (i32.load (i32.const COUNT)))
    (i32.ne (i32.load offset=KEYS (i32.shl (local.get $slot) (i32.const 2))) (local.get $key)))
  (then (local.set $slot (call $find (i32.const COUNT) (i32.const KEYS) (local.get $slot)
    (local.get $key) (i32.const SLOTS)))))"""

ARRAY_HEAD = (
    "(block DONE (loop BLOCK"
    + LONG
    + """
(br_if DONE (i64.eqz (local.get $n)))
(if (i64.lt_s (local.get $n) (i64.const 0)) (then
  (local.set COUNT (i64.sub (i64.const 0) (local.get $n)))"""
    + LONG
    + """
  (local.set $n (local.get COUNT))))
(if (i32.gt_u (local.get $at) (local.get $end)) (then (unreachable)))
(if (i64.gt_u (local.get $n) (i64.extend_i32_u (i32.sub (local.get $end) (local.get $at))))
  (then (unreachable)))
(local.set LEFT (i32.wrap_i64 (local.get $n)))
(loop ITEM
(if (i32.ge_u (local.get $at) (local.get $end)) (then (unreachable)))"""
)

ARRAY_TAIL = """
(br_if ITEM (local.tee LEFT (i32.sub (local.get LEFT) (i32.const 1)))))
(br BLOCK)))"""

# An entry is read: keep it, or make its cells empty and its heaps as they were where it is of a
# deleted file. The plain decoder reads the text of those: let it judge what is not ASCII.
NEXT_ROW = """
(if (i32.and
    (i32.eq (i32.load8_u offset=SIZES (i32.shr_u (local.get $row8) (i32.const 3))) (i32.const 8))
    (i64.eq (i64.load offset=NUMBERS (local.get $row8)) (i64.const DELETED)))
  (then
    (if (i64.ne (i64.and (local.get $high) (i64.const 0x8080808080808080)) (i64.const 0))
      (then (unreachable)))
    (call $clear (i32.add (i32.const SIZES) (i32.shr_u (local.get $row8) (i32.const 3)))
      (i32.const COLUMNS) (i32.const STRIDE))
    (local.set $heap (local.get $heap_kept))
    (local.set $items (local.get $items_kept))
    (local.set $paths (local.get $paths_kept)))
  (else
    (local.set $all_high (i64.or (local.get $all_high) (local.get $high)))
    (local.set $heap_kept (local.get $heap))
    (local.set $items_kept (local.get $items))
    (local.set $paths_kept (local.get $paths))
    (local.set $row8 (i32.add (local.get $row8) (i32.const 8)))))
(local.set $high (i64.const 0))"""

MODULE = """(module
(memory (export "memory") 1)
;; the bytes of a number after its first, $n: gives the number, zig-zag coded, and the next place
(func $rest (param $at i32) (param $n i64) (result i64 i32)
  (local $byte i64) (local $shift i64)
  (local.set $shift (i64.const 7))
  (local.set $n (i64.and (local.get $n) (i64.const 127)))
  (loop $more
    (local.set $byte (i64.load8_u (local.get $at)))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (local.set $n (i64.or (local.get $n)
      (i64.shl (i64.and (local.get $byte) (i64.const 127)) (local.get $shift))))
    (local.set $shift (i64.add (local.get $shift) (i64.const 7)))
    (if (i64.ge_u (local.get $byte) (i64.const 128)) (then
      (if (i64.gt_u (local.get $shift) (i64.const 63)) (then (unreachable)))
      (br $more))))
  ;; a tenth byte has one bit to give; what more some writers leave in it, everybody drops
  (local.get $n) (local.get $at))
;; copies eight bytes at a time, so up to seven more than asked: they are written over next
(func $copy (param $to i32) (param $from i32) (param $size i32)
  (if (i32.gt_u (local.get $size) (i32.const 512)) (then
    (memory.copy (local.get $to) (local.get $from) (local.get $size))
    (return)))
  (loop $more
    (i64.store (local.get $to) (i64.load (local.get $from)))
    (local.set $to (i32.add (local.get $to) (i32.const 8)))
    (local.set $from (i32.add (local.get $from) (i32.const 8)))
    (local.set $size (i32.sub (local.get $size) (i32.const 8)))
    (br_if $more (i32.gt_s (local.get $size) (i32.const 0)))))
;; as $copy does, and gives the bits that are set in any of eight bytes
(func $copy_text (param $to i32) (param $from i32) (param $size i32) (result i64)
  (local $word i64) (local $bits i64)
  (if (i32.eqz (local.get $size)) (then (return (i64.const 0))))
  (loop $more
    (local.set $word (i64.load (local.get $from)))
    (i64.store (local.get $to) (local.get $word))
    (local.set $to (i32.add (local.get $to) (i32.const 8)))
    (local.set $from (i32.add (local.get $from) (i32.const 8)))
    (local.set $size (i32.sub (local.get $size) (i32.const 8)))
    (if (i32.lt_s (local.get $size) (i32.const 0)) (then
      ;; without what lies beyond the text
      (local.set $word (i64.shl (local.get $word)
        (i64.extend_i32_u (i32.shl (i32.sub (i32.const 0) (local.get $size)) (i32.const 3)))))))
    (local.set $bits (i64.or (local.get $bits) (local.get $word)))
    (br_if $more (i32.gt_s (local.get $size) (i32.const 0))))
  (local.get $bits))
;; makes a row of cells empty: their sizes lie at $at and at every $stride from there
(func $clear (param $at i32) (param $columns i32) (param $stride i32)
  (loop $more
    (i32.store8 (local.get $at) (i32.const 255))
    (local.set $at (i32.add (local.get $at) (local.get $stride)))
    (br_if $more (local.tee $columns (i32.sub (local.get $columns) (i32.const 1))))))
(func $ascii (param $at i32) (param $size i32)
  (local $stop i32)
  (local.set $stop (i32.add (local.get $at) (local.get $size)))
  (block $done (loop $more
    (br_if $done (i32.ge_u (local.get $at) (local.get $stop)))
    (if (i32.ge_u (i32.load8_u (local.get $at)) (i32.const 128)) (then (unreachable)))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (br $more))))
;; the slot of a key, searched from a likely one on; a new key gets the next
(func $find (param $count i32) (param $keys i32) (param $slot i32) (param $key i32)
    (param $slots i32) (result i32)
  (local $known i32) (local $left i32) (local $place i32)
  (local.set $known (i32.load (local.get $count)))
  (local.set $left (local.get $known))
  (loop $more
    (if (i32.eqz (local.get $left)) (then
      (if (i32.ge_u (local.get $known) (local.get $slots)) (then (unreachable)))
      (local.set $place (i32.shl (local.get $known) (i32.const 2)))
      (i32.store (i32.add (local.get $keys) (local.get $place)) (local.get $key))
      (i32.store (local.get $count) (i32.add (local.get $known) (i32.const 1)))
      (return (local.get $known))))
    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
    (if (i32.ge_u (local.get $slot) (local.get $known)) (then (local.set $slot (i32.const 0))))
    (local.set $place (i32.shl (local.get $slot) (i32.const 2)))
    (if (i32.eq (i32.load (i32.add (local.get $keys) (local.get $place))) (local.get $key))
      (then (return (local.get $slot))))
    (local.set $slot (i32.add (local.get $slot) (i32.const 1)))
    (br $more))
  (unreachable))
;; walks as the state says, and leaves there how far it came
(func (export "walk")
  (local $at i32) (local $end i32) (local $stop i32) (local $records i32) (local $row8 i32)
  (local $heap_base i32) (local $heap i32) (local $heap_before i64)
  (local $items_base i32) (local $items i32) (local $items_before i64) (local $paths i32)
  (local $heap_kept i32) (local $items_kept i32) (local $paths_kept i32)
  (local $high i64) (local $all_high i64)
  (local $n i64) (local $size i32) (local $kept i32)
  (local $slot i32) (local $key i32) (local $p i32)
  LOCALS
  (local.set $at (i32.load offset=32 (i32.const 0)))
  (local.set $end (i32.load offset=36 (i32.const 0)))
  (local.set $row8 (i32.shl (i32.load offset=40 (i32.const 0)) (i32.const 3)))
  (local.set $records (i32.load offset=44 (i32.const 0)))
  (local.set $heap_base (i32.load offset=48 (i32.const 0)))
  (local.set $heap (i32.load offset=52 (i32.const 0)))
  (local.set $items_base (i32.load offset=56 (i32.const 0)))
  (local.set $items (i32.load offset=60 (i32.const 0)))
  (local.set $paths (i32.load offset=64 (i32.const 0)))
  (local.set $heap_before (i64.load offset=72 (i32.const 0)))
  (local.set $items_before (i64.load offset=80 (i32.const 0)))
  (local.set $stop (i32.load offset=88 (i32.const 0)))
  (local.set $heap_kept (local.get $heap))
  (local.set $items_kept (local.get $items))
  (local.set $paths_kept (local.get $paths))
  (block $done (loop $record
    (if (i32.eqz (local.get $records)) (then
      (if (i32.ne (local.get $at) (local.get $end)) (then (unreachable)))
      (br_if $done (i32.eq (local.get $at) (local.get $stop)))
      (local.set $records (i32.load (local.get $at)))
      (local.set $end (i32.load offset=4 (local.get $at)))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (local.set $end (i32.add (local.get $end) (local.get $at)))
      (br $record)))
    (br_if $done (i32.eq (local.get $row8) (i32.const FULL)))
    (local.set $records (i32.sub (local.get $records) (i32.const 1)))
BODY
    (if (i32.gt_u (local.get $at) (local.get $end)) (then (unreachable)))
NEXT_ROW
    (br $record)))
  (i32.store offset=32 (i32.const 0) (local.get $at))
  (i32.store offset=36 (i32.const 0) (local.get $end))
  (i32.store offset=40 (i32.const 0) (i32.shr_u (local.get $row8) (i32.const 3)))
  (i32.store offset=44 (i32.const 0) (local.get $records))
  (i32.store offset=52 (i32.const 0) (local.get $heap))
  (i32.store offset=60 (i32.const 0) (local.get $items))
  (i32.store offset=64 (i32.const 0) (local.get $paths))
  (if (i64.ne (i64.and (local.get $all_high) (i64.const 0x8080808080808080)) (i64.const 0))
    (then (i32.store offset=68 (i32.const 0) (i32.const 1))))))
"""
