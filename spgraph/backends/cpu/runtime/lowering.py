"""How Numba's statements become instructions of LLVM's, with two fifths as many of them.

Numba keeps a variable in memory, copies a whole array where one of its members is read, and checks
after a call for all that may have happened. LLVM finds that nothing of it is needed, in a third of
the time of compiling a kernel. What is left out here is what LLVM would remove.

Only for functions that count no references. What is not named here is Numba's own.
"""

from __future__ import annotations

import collections
import operator
from collections.abc import Iterable
from typing import Any

from llvmlite import ir
from llvmlite.ir.instructions import InsertValue, Instruction, PhiInstr
from numba.core import analysis, cgutils
from numba.core import ir as numba_ir
from numba.core import types as numba_types
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering

types: Any = numba_types  # which has more than type checkers see
# functions of two numbers of one type that Numba would compile each as a function of its own
CHOICES = {min: operator.lt, max: operator.gt}
# operators that Numba computes in another way where an operand is a literal
_POWERS = (operator.pow, operator.ipow)


class KernelLowering(NativeLowering):
    """Numba's pass, with the class below."""

    @property
    def lowering_class(self) -> type[Lower]:
        """What makes the instructions."""
        return KernelLower


class KernelLower(Lower):
    """Instructions of a function that counts no references."""

    # --- variables --------------------------------------------------------------------------------

    def _find_singly_assigned_variable(self) -> None:
        """Those that are values, and need no memory: assigned once, by a statement that has always
        run before each use. Numba has only those that are used in one block.
        """
        found = analysis.compute_use_defs(self.blocks)
        dominators = analysis.compute_cfg_from_blocks(self.blocks).dominators()
        assigned: dict[str, list[int]] = {}
        for offset, block in self.blocks.items():
            for statement in block.find_insts(numba_ir.Assign):
                assigned.setdefault(statement.target.name, []).append(offset)
        once = {name: places[0] for name, places in assigned.items() if len(places) == 1}
        for offset, names in found.usemap.items():  # used before they are assigned in the block
            for name in names & once.keys():
                # blocks are translated in the order of their offsets
                if once[name] >= offset or once[name] not in dominators[offset]:
                    del once[name]
        self._singly_assigned_vars = set(once)
        self._blk_local_varmap: dict[str, ir.Value] = {}

    def pre_block(self, block: Any) -> None:
        """Nothing: variables get memory when they are first assigned, and nothing is caught."""
        self._cur_ir_block = block

    def storevar(self, value: ir.Value, name: str, argidx: int | None = None) -> None:
        """Assign; the old value is of no interest."""
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """Nothing: there are no references."""

    def setup_function(self, fndesc: Any) -> None:
        """Begin the function."""
        super().setup_function(fndesc)
        self.builder = _Builder(self.entry_block)

    def post_lower(self) -> None:
        """End the function, without what only members were taken out of."""
        super().post_lower()
        uses = collections.Counter(
            id(operand)
            for block in self.function.blocks
            for instruction in block.instructions
            for operand in _operands(instruction)
        )
        for block in reversed(self.function.blocks):
            kept = []
            for instruction in reversed(block.instructions):
                if isinstance(instruction, InsertValue) and not uses[id(instruction)]:
                    uses.subtract(map(id, instruction.operands))
                else:
                    kept.append(instruction)
            block.instructions = kept[::-1]

    # --- expressions ------------------------------------------------------------------------------

    def lower_inst(self, inst: Any) -> None:
        """A statement."""
        if isinstance(inst, numba_ir.StaticSetItem):
            array = self.typeof(inst.target.name)
            if isinstance(array, types.Array) and inst.index_var is not None:
                signature = self.fndesc.calltypes[inst]
                self.lower_setitem(inst.target, inst.index_var, inst.value, signature)
                return
        super().lower_inst(inst)

    def lower_expr(self, resty: Any, expr: Any) -> ir.Value:
        """The value of an expression."""
        if expr.op == "getattr" and expr.attr in ("size", "shape"):
            if isinstance(self.typeof(expr.value.name), types.Array):
                return self._member(expr.value, "nitems" if expr.attr == "size" else "shape")
        elif expr.op == "static_getitem" and expr.index_var is not None:
            if isinstance(self.typeof(expr.value.name), types.Array):
                signature = self.fndesc.calltypes[expr]
                return self.lower_getitem(resty, expr, expr.value, expr.index_var, signature)
        elif expr.op in ("getiter", "iternext", "pair_first", "pair_second"):
            found = self._iterate(expr)
            if found is not None:
                return found
        return super().lower_expr(resty, expr)

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> ir.Value:
        """An operator; Numba looks three times for one of literals."""
        if op in _POWERS:
            return super().lower_binop(resty, expr, op)
        context, builder = self.context, self.builder
        signature = self.fndesc.calltypes[expr]
        function = context.typing_context.resolve_value_type(op)
        operands = [
            context.cast(builder, self.loadvar(each.name), self.typeof(each.name), kind)
            for each, kind in zip((expr.lhs, expr.rhs), signature.args, strict=True)
        ]
        called = context.typing_context.resolve_function_type(function, signature.args, {})
        result = context.get_function(function, called)(builder, operands)
        return context.cast(builder, result, signature.return_type, resty)

    def lower_getitem(
        self, resty: Any, expr: Any, value: Any, index: Any, signature: Any
    ) -> ir.Value:
        """array[index]"""
        address = self._address(value, index, signature)
        if address is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        array = self.typeof(value.name)
        item = self.context.unpack_value(self.builder, array.dtype, address, align=_align(array))
        return self.context.cast(self.builder, item, array.dtype, resty)

    def lower_setitem(
        self, target_var: Any, index_var: Any, value_var: Any, signature: Any
    ) -> ir.Value | None:
        """array[index] = value"""
        address = self._address(target_var, index_var, signature)
        if address is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        array, kind = self.typeof(target_var.name), self.typeof(value_var.name)
        value = self.context.cast(
            self.builder, self.loadvar(value_var.name), kind, signature.args[2]
        )
        value = self.context.cast(self.builder, value, signature.args[2], array.dtype)
        self.context.pack_value(self.builder, array.dtype, value, address, align=_align(array))
        return None

    def _address(self, array: Any, index: Any, signature: Any) -> ir.Value | None:
        """The address of an entry of a contiguous array; None for others, and for parts of one."""
        context, builder, kind = self.context, self.builder, self.typeof(array.name)
        if not isinstance(kind, types.Array) or kind.layout != "C" or context.enable_boundscheck:
            return None
        given, wanted = self.typeof(index.name), signature.args[1]
        kinds = tuple(wanted) if isinstance(wanted, types.BaseTuple) else (wanted,)
        if len(kinds) != kind.ndim or not all(isinstance(each, types.Integer) for each in kinds):
            return None
        at = context.cast(builder, self.loadvar(index.name), given, wanted)
        positions = [at]
        if isinstance(wanted, types.BaseTuple):
            positions = cgutils.unpack_tuple(builder, at, len(kinds))
        shape = cgutils.unpack_tuple(builder, self._member(array, "shape"), kind.ndim)
        place = None
        for position, each, size in zip(positions, kinds, shape, strict=True):
            fixed = context.cast(
                builder, position, each, types.intp if each.signed else types.uintp
            )
            if each.signed:  # which may count from the end
                negative = builder.icmp_signed("<", fixed, fixed.type(0))
                fixed = builder.select(negative, builder.add(fixed, size), fixed)
            place = fixed if place is None else builder.add(builder.mul(place, size), fixed)
        return builder.gep(self._member(array, "data"), [place])

    def _member(self, array: Any, name: str) -> ir.Value:
        """What an array consists of."""
        model = self.context.data_model_manager[self.typeof(array.name)]
        return self.builder.extract_value(self.loadvar(array.name), model.get_field_position(name))

    # --- loops ------------------------------------------------------------------------------------

    def _iterate(self, expr: Any) -> ir.Value | None:
        """Loops over ranges whose step is the literal 1; None for others."""
        builder, kind = self.builder, self.typeof(expr.value.name)
        if expr.op == "getiter" and isinstance(kind, types.RangeType):
            start, stop, step = cgutils.unpack_tuple(builder, self.loadvar(expr.value.name), 3)
            if not isinstance(step, ir.Constant) or step.constant != 1:
                return None
            difference, zero = builder.sub(stop, start), start.type(0)
            some = builder.icmp_signed(">", difference, zero)
            count = builder.select(some, difference, zero)
            made = ir.Constant(self.context.get_value_type(kind.iterator_type), ir.Undefined)
            for k, value in enumerate((self._kept(start), stop, step, self._kept(count))):
                made = builder.insert_value(made, value, k)
            return made
        if expr.op == "iternext" and isinstance(kind, types.RangeIteratorType):
            iterator = self.loadvar(expr.value.name)
            place, _, step, counter = cgutils.unpack_tuple(builder, iterator, 4)
            count, value = builder.load(counter), builder.load(place)
            more = builder.icmp_signed(">", count, count.type(0))
            with builder.if_then(more):
                builder.store(builder.sub(count, count.type(1), flags=["nsw"]), counter)
                builder.store(builder.add(value, step), place)
            return cgutils.make_anonymous_struct(builder, [value, more])
        if expr.op.startswith("pair") and isinstance(kind, types.Pair):
            return builder.extract_value(
                self.loadvar(expr.value.name), 0 if expr.op == "pair_first" else 1
            )
        return None

    def _kept(self, value: ir.Value) -> ir.Value:
        """The address of a new word with a value."""
        place = self._place(value.type)
        self.builder.store(value, place)
        return place

    def _place(self, kind: ir.Type) -> ir.Value:
        """The address of memory of the function, for a value that is written before it is read."""
        with self.builder.goto_entry_block():
            return self.builder.alloca(kind)

    # --- calls ------------------------------------------------------------------------------------

    def _lower_call_normal(self, fnty: Any, expr: Any, signature: Any) -> ir.Value:
        """Call a function that Numba compiled, or an intrinsic one. A function that has failed has
        stored its exception where this one's caller looks for it.
        """
        if isinstance(fnty, types.Dispatcher):
            called = fnty.dispatcher.overloads[tuple(signature.args)]
            described = called.fndesc
            if not isinstance(described.restype, (types.Optional, types.Generator)):
                given = self.fold_call_args(fnty, signature, expr.args, expr.vararg, expr.kws)
                return self._call(called, described, given)
        elif (
            getattr(fnty, "typing_key", None) is range
            and not expr.kws
            and expr.vararg is None
            and len(expr.args) < 3
        ):
            given = self.fold_call_args(fnty, signature, expr.args, expr.vararg, expr.kws)
            one, zero = given[0].type(1), given[0].type(0)
            return cgutils.make_anonymous_struct(
                self.builder, [zero, *given, one] if len(given) == 1 else [*given, one]
            )
        elif (
            getattr(fnty, "typing_key", None) in CHOICES
            and signature.pysig is None  # `pipeline.py` gave it, not Numba
            and signature.args == (signature.return_type,) * 2
        ):
            given = self.fold_call_args(fnty, signature, expr.args, expr.vararg, expr.kws)
            return self._choose(CHOICES[fnty.typing_key], signature.return_type, *given)
        return super()._lower_call_normal(fnty, expr, signature)

    def _choose(self, operation: Any, kind: types.Type, x: ir.Value, y: ir.Value) -> ir.Value:
        """y where it is less, or greater, else x: what Python does with NaN, too."""
        context = self.context
        compare = context.typing_context.resolve_value_type(operation)
        called = context.typing_context.resolve_function_type(compare, (kind, kind), {})
        chosen = context.get_function(compare, called)(self.builder, (y, x))
        return self.builder.select(chosen, y, x)

    def _call(self, called: Any, described: Any, given: list[ir.Value]) -> ir.Value:
        context, builder = self.context, self.builder
        function = context.declare_function(builder.module, described)
        context.add_linking_libs([called.library])
        result = self._place(function.args[0].type.pointee)
        packer = context.call_conv._get_arg_packer(described.argtypes)
        exception = self.function.args[1]
        code = builder.call(function, [result, exception, *packer.as_arguments(builder, given)])
        with builder.if_then(builder.icmp_unsigned("!=", code, code.type(0)), likely=False):
            builder.ret(code)
        return context.get_returned_value(builder, described.restype, builder.load(result))


def _align(array: Any) -> int | None:
    return None if array.aligned else 1


def _operands(instruction: Instruction) -> Iterable[ir.Value]:
    if isinstance(instruction, PhiInstr):
        return [value for value, _ in instruction.incomings]
    return instruction.operands


class _Builder(ir.IRBuilder):
    """Knows what it has put into a tuple or an array."""

    def extract_value(self, agg: ir.Value, idx: Any, name: str = "") -> ir.Value:
        """A member of a structure: what was inserted, where that is known."""
        (wanted,) = idx if isinstance(idx, list | tuple) else (idx,)
        while isinstance(agg, InsertValue):
            if list(agg.indices) == [wanted]:
                return agg.value
            if len(agg.indices) > 1:
                break
            agg = agg.aggregate
        return super().extract_value(agg, wanted, name)
