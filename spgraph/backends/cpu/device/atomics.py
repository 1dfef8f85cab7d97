"""Atomic operations on array elements for CPU kernels, a bit scan, a clock, and a way to wait.

Numba has no atomics for CPUs; each of these is a few LLVM instructions. All are sequentially
consistent except the load, which acquires, and the store, which releases.
"""

import sys
import time
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.extending import intrinsic

_I64 = types.intp


def _element(
    context: BaseContext, builder: ir.IRBuilder, kind: types.Array, array: ir.Value, index: ir.Value
) -> tuple[ir.Value, ir.IntType]:
    """(pointer to array[index], the integer type of an element's width), because atomics operate on
    integers.
    """
    view = context.make_array(kind)(context, builder, array)
    pointer = cgutils.get_item_pointer(context, builder, kind, view, [index], wraparound=False)
    stored = pointer.type.pointee
    width = context.get_abi_sizeof(stored) * 8
    integer = ir.IntType(width)
    return builder.bitcast(pointer, integer.as_pointer()), integer


def _to_bits(
    context: BaseContext,
    builder: ir.IRBuilder,
    kind: types.Type,
    value: ir.Value,
    integer: ir.IntType,
) -> ir.Value:
    data = context.get_value_as_data(builder, kind, value)
    return data if data.type == integer else builder.bitcast(data, integer)


def _from_bits(
    context: BaseContext, builder: ir.IRBuilder, kind: types.Type, bits: ir.Value
) -> ir.Value:
    data_type = context.get_data_type(kind)
    data = bits if bits.type == data_type else builder.bitcast(bits, data_type)
    return context.data_model_manager[kind].from_data(builder, data)


@intrinsic
def atomic_load(typing_context, array, index):  # type: ignore[no-untyped-def]
    """array[index], read atomically, with acquire ordering."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer, integer = _element(context, builder, array, arguments[0], arguments[1])
        bits = builder.load_atomic(pointer, "acquire", integer.width // 8)
        return _from_bits(context, builder, array.dtype, bits)

    return array.dtype(array, _I64), codegen


@intrinsic
def atomic_store(typing_context, array, index, value):  # type: ignore[no-untyped-def]
    """array[index] = value, atomically, with release ordering."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer, integer = _element(context, builder, array, arguments[0], arguments[1])
        bits = _to_bits(context, builder, array.dtype, arguments[2], integer)
        builder.store_atomic(bits, pointer, "release", integer.width // 8)
        return context.get_dummy_value()

    return types.none(array, _I64, array.dtype), codegen


def _read_modify_write(instruction: str, text: str) -> Any:
    @intrinsic
    def operation(typing_context, array, index, value):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            pointer, _ = _element(context, builder, array, arguments[0], arguments[1])
            return builder.atomic_rmw(instruction, pointer, arguments[2], "seq_cst")

        return array.dtype(array, _I64, array.dtype), codegen

    operation.__doc__ = text
    return operation


atomic_add = _read_modify_write("add", "array[index] += value for integers; gives the old value.")
atomic_or = _read_modify_write("or", "array[index] |= value for integers; gives the old value.")


@intrinsic
def compare_exchange(typing_context, array, index, expected, desired):  # type: ignore[no-untyped-def]
    """If array[index] has the bits of `expected`, write `desired` and return True; for any type."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        pointer, integer = _element(context, builder, array, arguments[0], arguments[1])
        old = _to_bits(context, builder, array.dtype, arguments[2], integer)
        new = _to_bits(context, builder, array.dtype, arguments[3], integer)
        pair = builder.cmpxchg(pointer, old, new, "seq_cst", "seq_cst")
        return builder.extract_value(pair, 1)

    return types.boolean(array, _I64, array.dtype, array.dtype), codegen


@intrinsic
def lowest_bit(typing_context, bits):  # type: ignore[no-untyped-def]
    """The position of the lowest set bit of an integer that is not 0."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], cgutils.true_bit)

    return bits(bits), codegen


@intrinsic
def nanoseconds(typing_context):  # type: ignore[no-untyped-def]
    """The time in nanoseconds of a monotonic clock."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return nanoseconds_now(builder)

    return types.int64(), codegen


@intrinsic
def let_others_run(typing_context):  # type: ignore[no-untyped-def]
    """Give up the processor if another thread waits for it: it may be the one waited for."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [])
        return context.get_dummy_value()

    return types.none(), codegen


def nanoseconds_now(builder: ir.IRBuilder) -> ir.Value:
    """The LLVM value of `nanoseconds`."""
    integer = ir.IntType(64)
    if sys.platform == "win32":  # in milliseconds
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(integer, []), "GetTickCount64"
        )
        return builder.mul(builder.call(function, []), integer(1_000_000))
    pair = cgutils.alloca_once(builder, ir.ArrayType(integer, 2))
    kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32), pair.type])
    function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
    builder.call(function, [ir.IntType(32)(time.CLOCK_MONOTONIC), pair])
    seconds, rest = (builder.extract_value(builder.load(pair), k) for k in (0, 1))
    return builder.add(builder.mul(seconds, integer(1_000_000_000)), rest)
