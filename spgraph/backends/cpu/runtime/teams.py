"""The functions that kernels call to synchronise: `barrier`, `poll`, and `on_all_threads`, which
starts a kernel on all threads; and the layout of the memory that the threads of a launch share.

Every thread of a launch has a *record* of words, whose address kernels get as `sync`; the records
of a team of threads have a common *control* block. kernels/pool.py contains the functions that
wait; kernels call them by addresses in their record, so that they are compiled once and not as part
of every kernel.

If a signal handler raises an exception or a thread fails, every thread leaves the kernel by
KeyboardInterrupt at its next call of `barrier` or `poll`; no thread waits for one that has left.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from spgraph.backends.cpu.device.atomics import nanoseconds_now

# --- the words of a record, by their offset in bytes ----------------------------------------------

# whether the thread must leave the kernel; the time of its next check for signals, or NEVER; the
# caller's record, which stores an exception; the control block; addresses of `run` and
# `wait_at_barrier`; the number of the thread; how long it spins at a barrier
STOP, NEXT, CALLER, CONTROL, RUN, WAIT_AT_BARRIER, THREAD, AT_BARRIER = range(0, 64, 8)
# of a worker: its part of a launch, whether it sleeps, what it raised; how long it spins for work,
# and thread 0 for the others' ends
WORK, ASLEEP, RAISED, FOR_WORK = range(64, 96, 8)
# what WORK adds up: a part that nobody has begun; the worker must end
OPEN, ENDED = 1, 2
# whether a signal handler may be running; the exception that one raised, as by PyErr_Fetch
CHECKING, TYPE, VALUE, TRACE = range(128, 160, 8)
RECORD = 192  # bytes

# --- the words of a control block: words that several threads write have cache lines of their own -

LOCK, ARRIVED, ROUND, ASLEEP_AT_ROUND, DONE, ASLEEP_AT_DONE, FAILED, GIVEN = range(0, 512, 64)
# in the line of FAILED: the status and the exception of the thread that failed first
CODE, EXCEPTION = FAILED + 8, FAILED + 16
# in the line of GIVEN: what the threads call
FUNCTION, DATA, THREADS = GIVEN, GIVEN + 8, GIVEN + 16
RECORDS = 512  # where the records begin; bytes of a control block

NEVER = 2**63 - 1
# nanoseconds between two checks for signals
INTERVAL = 50_000_000
# what `run` returns if a signal handler raised an exception before or after its own part
STOPPED = 1 << 30

_WORD = ir.IntType(64)
_CODE = ir.IntType(32)


def pointer(
    builder: ir.IRBuilder, address: ir.Value, offset: int = 0, kind: ir.Type = _WORD
) -> ir.Value:
    """An address, and so many bytes more, as a pointer."""
    if offset:
        address = builder.add(address, _WORD(offset))
    return builder.inttoptr(address, kind.as_pointer())


def outer_function(
    module: ir.Module, name: str, result: ir.Type, *arguments: ir.Type, variadic: bool = False
) -> ir.Function:
    """A function of the system or of Python, by the name of its symbol."""
    kind = ir.FunctionType(result, arguments, var_arg=variadic)
    return cgutils.get_or_insert_function(module, kind, name)


# --- what kernels call ----------------------------------------------------------------------------


@intrinsic
def poll(typing_context, sync):  # type: ignore[no-untyped-def]
    """Leave the kernel by KeyboardInterrupt if it must stop. Thread 0 checks for signals here,
    every 50 ms: loops that may run for longer must call this.
    """

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        stop = builder.call(_poller(builder.module), arguments)
        with builder.if_then(stop, likely=False):
            context.call_conv.return_user_exc(builder, KeyboardInterrupt, ())
        return context.get_dummy_value()

    return types.none(types.int64), codegen


@intrinsic
def barrier(typing_context, sync, threads):  # type: ignore[no-untyped-def]
    """Return when all `threads` have called it; what each wrote before is then visible to all.
    Leaves the kernel as `poll` does.
    """

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        sync, threads = arguments
        stop = builder.call(_barrier(builder.module), [sync, threads])
        with builder.if_then(stop, likely=False):
            context.call_conv.return_user_exc(builder, KeyboardInterrupt, ())
        return context.get_dummy_value()

    return types.none(types.int64, types.int64), codegen


@intrinsic
def on_all_threads(typing_context, threads, sync):  # type: ignore[no-untyped-def]
    """Call the enclosing kernel once on each of `threads` threads, with the same other arguments;
    raise what one of them raised.
    """

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kernel, convention = builder.function, context.call_conv
        given = list(convention.get_arguments(kernel))
        kept = cgutils.alloca_once(builder, ir.LiteralStructType([value.type for value in given]))
        for k, value in enumerate(given):
            builder.store(value, cgutils.gep_inbounds(builder, kept, 0, k))
        raised = cgutils.alloca_once_value(builder, _WORD(0))
        run = builder.load(pointer(builder, arguments[1], RUN))
        run = builder.inttoptr(run, ir.FunctionType(_WORD, [_WORD] * 5).as_pointer())
        part = _part(kernel, kept.type, builder.module)
        status = builder.call(
            run,
            [
                arguments[1],
                builder.ptrtoint(part, _WORD),
                builder.ptrtoint(kept, _WORD),
                arguments[0],
                builder.ptrtoint(raised, _WORD),
            ],
        )
        code = builder.trunc(status, _CODE)
        with builder.if_then(builder.icmp_signed("==", code, _CODE(STOPPED)), likely=False):
            convention.return_user_exc(builder, KeyboardInterrupt, ())
        exception = builder.inttoptr(builder.load(raised), kernel.args[1].type.pointee)
        with builder.if_then(builder.icmp_signed(">", code, _CODE(0)), likely=False):
            builder.store(exception, kernel.args[1])
            builder.ret(code)
        return context.get_dummy_value()

    return types.none(types.int64, types.int64), codegen


def _part(kernel: ir.Function, kept: ir.PointerType, module: ir.Module) -> ir.Function:
    """A function (address of the arguments, thread, sync, address for an exception) -> status: one
    thread's call of a kernel.
    """
    kind = ir.FunctionType(_CODE, [_WORD] * 4)
    function = ir.Function(module, kind, f"{kernel.name}.part")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    data, thread, sync, raised = function.args
    values = builder.load(builder.inttoptr(data, kept))
    rest = [builder.extract_value(values, k) for k in range(len(kept.pointee.elements))]
    rest[0], rest[2] = thread, sync
    result = cgutils.alloca_once(builder, kernel.args[0].type.pointee)
    exception = cgutils.alloca_once(builder, kernel.args[1].type.pointee)
    builder.store(ir.Constant(exception.type.pointee, None), exception)
    code = builder.call(kernel, [result, exception, *rest])
    builder.store(builder.ptrtoint(builder.load(exception), _WORD), pointer(builder, raised))
    builder.ret(code)
    return function


# --- functions that are part of every kernel's machine code ---------------------------------------

PREFIX = "spgraph_"  # of their names


def _helper(
    module: ir.Module, name: str, arguments: int
) -> tuple[ir.Function, ir.IRBuilder | None]:
    """(a function of `arguments` words that returns whether to stop, its builder, or None if the
    module has the function already).
    """
    name = PREFIX + name
    if name in module.globals:
        return module.globals[name], None
    kind = ir.FunctionType(ir.IntType(1), [_WORD] * arguments)
    function = ir.Function(module, kind, name)
    function.linkage = "linkonce_odr"  # one in a kernel, of all parts that have it
    function.attributes.add("noinline")
    return function, ir.IRBuilder(function.append_basic_block())


def checker(module: ir.Module) -> ir.Function:
    """`check_signals` of instructions.py, which also `poll` calls."""
    function, builder = _helper(module, "check_signals", 1)
    if builder is None:
        return function
    (sync,) = function.args
    caller = builder.load(pointer(builder, sync, CALLER))
    opaque = ir.IntType(8).as_pointer()
    builder.store(_WORD(1), pointer(builder, caller, CHECKING))
    state = builder.call(outer_function(module, "PyGILState_Ensure", _CODE), [])
    failed = builder.call(outer_function(module, "PyErr_CheckSignals", _CODE), [])
    failed = builder.icmp_signed("!=", failed, _CODE(0))
    with builder.if_then(failed, likely=False):
        places = [pointer(builder, caller, word, opaque) for word in (TYPE, VALUE, TRACE)]
        fetch = outer_function(module, "PyErr_Fetch", ir.VoidType(), *[opaque.as_pointer()] * 3)
        builder.call(fetch, places)
    builder.call(outer_function(module, "PyGILState_Release", ir.VoidType(), _CODE), [state])
    builder.store(_WORD(0), pointer(builder, caller, CHECKING))
    again = builder.add(nanoseconds_now(builder), _WORD(INTERVAL))
    builder.store(again, pointer(builder, sync, NEXT))
    builder.ret(failed)
    return function


def _poller(module: ir.Module) -> ir.Function:
    function, builder = _helper(module, "poll", 1)
    if builder is None:
        return function
    (sync,) = function.args
    stop = builder.load_atomic(pointer(builder, sync, STOP), "acquire", 8)
    with builder.if_then(builder.icmp_signed("!=", stop, _WORD(0)), likely=False):
        builder.ret(ir.IntType(1)(1))
    due = builder.load(pointer(builder, sync, NEXT))
    with builder.if_then(builder.icmp_signed("==", due, _WORD(NEVER))):
        builder.ret(ir.IntType(1)(0))
    with builder.if_then(builder.icmp_signed("<", nanoseconds_now(builder), due), likely=True):
        builder.ret(ir.IntType(1)(0))
    builder.ret(builder.call(checker(module), [sync]))
    return function


def _barrier(module: ir.Module) -> ir.Function:
    function, builder = _helper(module, "barrier", 2)
    if builder is None:
        return function
    sync, threads = function.args
    with builder.if_then(builder.icmp_signed("==", threads, _WORD(1))):
        builder.ret(builder.call(_poller(module), [sync]))
    wait_at_barrier = builder.load(pointer(builder, sync, WAIT_AT_BARRIER))
    wait_at_barrier = builder.inttoptr(
        wait_at_barrier, ir.FunctionType(_WORD, [_WORD]).as_pointer()
    )
    builder.ret(builder.icmp_signed("!=", builder.call(wait_at_barrier, [sync]), _WORD(0)))
    return function
