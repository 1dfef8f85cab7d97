"""The instructions of functions of words (`words.py`): what these do with words at addresses, and
how they sleep. Each adds to the function that `builder` builds, and gives its result.
"""

from __future__ import annotations

import platform
import sys

from llvmlite import ir
from numba.core import cgutils

from spgraph.backends.cpu.device.atomics import nanoseconds_now as nanoseconds  # noqa: F401
from spgraph.backends.cpu.runtime.teams import checker, outer_function, pointer

_WORD = ir.IntType(64)
_CODE = ir.IntType(32)

# number of the system call on Linux; elsewhere waiting threads sleep for short times
FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}.get(platform.machine(), 0)
FUTEX = FUTEX if sys.platform == "linux" else 0
_WAIT, _WAKE = 128, 129  # private to the process


def load(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    """The word at an address, ordered before what follows."""
    return builder.load_atomic(pointer(builder, address), "seq_cst", 8)


def store(builder: ir.IRBuilder, address: ir.Value, value: ir.Value) -> None:
    """Write a word, ordered with all other such stores and loads."""
    builder.store_atomic(value, pointer(builder, address), "seq_cst", 8)


def add(builder: ir.IRBuilder, address: ir.Value, value: ir.Value) -> ir.Value:
    """Add to a word; the old value."""
    return builder.atomic_rmw("add", pointer(builder, address), value, "seq_cst")


def exchange(builder: ir.IRBuilder, address: ir.Value, value: ir.Value) -> ir.Value:
    """Write a word; the old value."""
    return builder.atomic_rmw("xchg", pointer(builder, address), value, "seq_cst")


def replace(
    builder: ir.IRBuilder, address: ir.Value, expected: ir.Value, desired: ir.Value
) -> ir.Value:
    """If the word is `expected`, write `desired`; whether it was."""
    place = pointer(builder, address)
    pair = builder.cmpxchg(place, expected, desired, "seq_cst", "seq_cst")
    return builder.extract_value(pair, 1)


def sleep_while(builder: ir.IRBuilder, address: ir.Value, value: ir.Value, limit: ir.Value) -> None:
    """Sleep until woken, at most `limit` nanoseconds, if the low 32 bits of the word at `address`
    equal those of `value`. May return at any time.
    """
    if not FUTEX:
        name, unit = ("Sleep", 1_000_000) if sys.platform == "win32" else ("usleep", 1000)
        sleep = outer_function(builder.module, name, _CODE, _CODE)
        builder.call(sleep, [builder.trunc(builder.udiv(limit, _WORD(unit)), _CODE)])
        return
    second = _WORD(1_000_000_000)
    time = cgutils.alloca_once(builder, ir.ArrayType(_WORD, 2))
    pair = ir.Constant(time.type.pointee, ir.Undefined)
    pair = builder.insert_value(pair, builder.udiv(limit, second), 0)
    pair = builder.insert_value(pair, builder.urem(limit, second), 1)
    builder.store(pair, time)
    _system_call(builder, address, _WAIT, value, builder.ptrtoint(time, _WORD))


def wake(builder: ir.IRBuilder, address: ir.Value) -> None:
    """Wake all threads that sleep at an address."""
    if FUTEX:
        _system_call(builder, address, _WAKE, _WORD(2**31 - 1), _WORD(0))


def pause(builder: ir.IRBuilder) -> None:
    """Tell the processor that this thread spins: what shares its core has more of it."""
    machine = platform.machine()
    if machine in ("x86_64", "AMD64"):
        builder.call(outer_function(builder.module, "llvm.x86.sse2.pause", ir.VoidType()), [])
    elif machine in ("aarch64", "arm64"):
        hint = outer_function(builder.module, "llvm.aarch64.hint", ir.VoidType(), _CODE)
        builder.call(hint, [_CODE(1)])


def _system_call(
    builder: ir.IRBuilder, address: ir.Value, operation: int, value: ir.Value, time: ir.Value
) -> None:
    call = outer_function(builder.module, "syscall", _WORD, _WORD, variadic=True)
    zero = _WORD(0)
    builder.call(call, [_WORD(FUTEX), address, _WORD(operation), value, time, zero, zero])


def call(
    builder: ir.IRBuilder,
    function: ir.Value,
    data: ir.Value,
    thread: ir.Value,
    sync: ir.Value,
    raised: ir.Value,
) -> ir.Value:
    """Call a function that `on_all_threads` made, with where it stores an exception; its status."""
    kind = ir.FunctionType(_CODE, [_WORD] * 4)
    called = builder.inttoptr(function, kind.as_pointer())
    return builder.sext(builder.call(called, [data, thread, sync, raised]), _WORD)


def check_signals(builder: ir.IRBuilder, sync: ir.Value) -> ir.Value:
    """Run Python's signal handlers; whether one raised an exception, which the caller's record then
    holds. Does nothing except on the main thread.
    """
    return builder.call(checker(builder.module), [sync])
