"""Operations of more than one expression: integer division, powers, rounding, Python's // and %.

Each is generated for one type at a time (C++ templates are not allowed inside `extern "C"`). In the
texts T is the type, U the unsigned type whose arithmetic wraps around, LOWEST and HIGHEST are T's
limits. There are two integer divisions: built-in operators follow SuiteSparse, while a user's
function that is translated to CUDA must do what Numba does.
"""

import re
from dataclasses import dataclass

import numpy as np

from .functions import (
    C_TYPES,
    NAME,
    cuda_literal,
    highest,
    lowest,
    python_cast,
    python_literal,
    ring_type,
)


@dataclass(frozen=True)
class Helper:
    """`cuda` is the body of a device function, `python` that of a Numba function, if needed."""

    parameters: str
    cuda: str
    python: str = ""


_BY_ZERO = "x == 0 ? 0 : x < 0 ? LOWEST : HIGHEST"
_BY_ZERO_PYTHON = "T(0) if x == 0 else LOWEST if x < 0 else HIGHEST"
_POWER = """
        unsigned long long value = 1, base = (unsigned long long)x, rest = (unsigned long long)y;
        for (; rest != 0; rest >>= 1, base *= base)
            if (rest & 1) value *= base;
        return (T)value;
        """
_POWER_PYTHON = """
        value, base, rest = np.uint64(1), np.uint64(x), np.uint64(y)
        while rest != np.uint64(0):
            if rest & np.uint64(1):
                value = value * base
            base = base * base
            rest = rest >> np.uint64(1)
        return T(value)
        """

HELPERS: dict[str, Helper] = {
    # SuiteSparse's conventions: x / 0 is the limit on x's side (0 / 0 is 0), x / -1 wraps around.
    "quotient": Helper(
        "T x, T y",
        f"""
        if (y == 0) return {_BY_ZERO};
        if (y == -1) return (T)(0 - (U)x);
        return (T)(x / y);
        """,
        f"""
        if y == 0:
            return {_BY_ZERO_PYTHON}
        if y == -1:
            return T(-U(x))
        floor = x // y
        return T(floor + 1) if x % y != 0 and (x < 0) != (y < 0) else T(floor)
        """,
    ),
    "unsigned_quotient": Helper(
        "T x, T y",
        "return (T)(y != 0 ? x / y : x != 0 ? HIGHEST : x);",
        "return T(x // y) if y != T(0) else HIGHEST if x != T(0) else x",
    ),
    "inverse": Helper(
        "T x",
        "return (T)(x == 0 ? HIGHEST : 1 / x);",
        "return HIGHEST if x == T(0) else x if x == 1 or x == -1 else T(0)",
    ),
    "floor_quotient": Helper(
        "T x, T y",
        f"""
        if (y == 0) return {_BY_ZERO};
        if (y == -1) return (T)(0 - (U)x);
        return (T)(x / y - (x % y != 0 && (x < 0) != (y < 0)));
        """,
        f"""
        if y == 0:
            return {_BY_ZERO_PYTHON}
        if y == -1:
            return T(-U(x))
        return T(x // y)
        """,
    ),
    "modulo": Helper(
        "T x, T y",
        """
        if (y == 0 || y == -1) return 0;
        const T rest = (T)(x % y);
        return (T)(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
        """,
        """
        if y == 0 or y == -1:
            return T(0)
        return T(x % y)
        """,
    ),
    # Wraps around; a negative exponent inverts as integer division does: 1, -1 or 0, 1 / 0 HIGHEST.
    "power": Helper(
        "T x, T y",
        f"""
        if (y < 0) return (T)(x == 0 ? HIGHEST : x != 1 && x != -1 ? 0 : y % 2 == 0 ? 1 : x);
        {_POWER.strip()}
        """,
        f"""
        if y < 0:
            if x == 0:
                return HIGHEST
            if x != 1 and x != -1:
                return T(0)
            return x if y % 2 != 0 else T(1)
        {_POWER_PYTHON.strip()}
        """,
    ),
    "unsigned_power": Helper("T x, T y", _POWER, _POWER_PYTHON),
    # What C's pow gives, rounded at most once for the exponents that NumPy's ** treats alone, too.
    "real_power": Helper(
        "T x, T y",
        """
        if (y == 2) return x * x;
        if (y == (T)0.5) return x == LOWEST ? HIGHEST : sqrt(x) + 0;
        if (y == -1) return 1 / x;
        return pow(x, y);
        """,
        """
        if y == T(2):
            return x * x
        if y == T(0.5):  # -0 becomes 0
            return HIGHEST if x == LOWEST else np.sqrt(x) + T(0)
        if y == T(-1):
            return T(1) / x
        return x**y
        """,
    ),
    # An exponent past 5000 leaves float64 in any case, and ldexp takes it as 32 bits.
    "scaled": Helper(
        "T x, long long y",
        "return ldexp(x, (int)(y > 5000 ? 5000 : y < -5000 ? -5000 : y));",
        "return math.ldexp(x, np.int32(max(-5000, min(y, 5000))))",
    ),
    "real_sign": Helper(
        "T x",
        "return x > 0 ? (T)1 : x < 0 ? (T)-1 : x;",
        "return T(1) if x > 0 else T(-1) if x < 0 else x",
    ),
    # C's round: halves away from zero. x - trunc(x) is exact.
    "rounded": Helper(
        "T x",
        "return round(x);",
        """
        whole = np.trunc(x)
        return whole + np.copysign(T(1), x) if abs(x - whole) >= T(0.5) else whole
        """,
    ),
    # Python's x // y and x % y over floats, as CPython and Numba compute them.
    "real_floor_quotient": Helper(
        "T x, T y",
        """
        if (y == 0) return x / y;
        const T rest = fmod(x, y);
        T quotient = (x - rest) / y;
        if (rest != 0 && (y < 0) != (rest < 0)) quotient -= 1;
        if (!(quotient < 0 || quotient > 0)) return quotient * quotient * x / y;
        const T whole = floor(quotient);
        return quotient - whole > (T)0.5 ? whole + 1 : whole;
        """,
    ),
    "real_modulo": Helper(
        "T x, T y",
        """
        const T rest = fmod(x, y);
        if (rest == 0) return y < 0 ? (T)-0.0 : (T)0.0;
        return y != 0 && (y < 0) != (rest < 0) ? rest + y : rest;
        """,
    ),
    # What Numba does where a user's function divides integers: x // 0 and the minimum // -1 are 0.
    "numba_floor_quotient": Helper(
        "T x, T y",
        """
        if (y == 0 || (x == LOWEST && y == -1)) return 0;
        return (T)(x / y - (x % y != 0 && (x < 0) != (y < 0)));
        """,
    ),
    "numba_quotient": Helper("T x, T y", "return y != 0 ? (T)(x / y) : (T)0;"),
    "numba_rest": Helper("T x, T y", "return y != 0 ? (T)(x % y) : (T)0;"),
    # Numba's x ** n for a constant n: squarings.
    "numba_power": Helper(
        "T x, unsigned int n",
        """
        T value = 1;
        for (; n != 0; n >>= 1, x *= x)
            if (n & 1) value *= x;
        return value;
        """,
    ),
    "numba_integer_power": Helper(
        "T x, unsigned int n",
        """
        unsigned long long value = 1, base = (unsigned long long)x;
        for (; n != 0; n >>= 1, base *= base)
            if (n & 1) value *= base;
        return (T)value;
        """,
    ),
    "absolute": Helper("T x", "return x < 0 ? (T)(0 - (U)x) : x;"),
    "sign": Helper("T x", "return (T)(x > 0 ? 1 : x < 0 ? -1 : x);"),
    # Python's min and max keep the first of equals and compare with <; np.minimum and np.maximum
    # pass NaN on.
    "lesser": Helper("T x, T y", "return y < x ? y : x;"),
    "greater": Helper("T x, T y", "return y > x ? y : x;"),
    "minimum": Helper("T x, T y", "return x < y || x != x ? x : y;"),
    "maximum": Helper("T x, T y", "return x > y || x != x ? x : y;"),
}


def python_text(text: str, dtype: np.dtype) -> str:
    """`text` with T, U, LOWEST and HIGHEST replaced by those of `dtype`, for Numba."""
    words = {
        "T": python_cast(dtype, "").removesuffix("()"),
        "U": "np.uint64",
        "LOWEST": python_literal(lowest(dtype)),
        "HIGHEST": python_literal(highest(dtype)),
    }
    return re.sub(r"\b(T|U|LOWEST|HIGHEST)\b", lambda found: words[found[0]], text)


def cuda_text(text: str, dtype: np.dtype) -> str:
    """`text` with T, U, LOWEST and HIGHEST replaced by those of `dtype`, for CUDA C++."""
    words = {
        "T": C_TYPES[dtype.name],
        "U": C_TYPES[ring_type(dtype).name],
        "LOWEST": cuda_literal(lowest(dtype)),
        "HIGHEST": cuda_literal(highest(dtype)),
    }
    return re.sub(r"\b(T|U|LOWEST|HIGHEST)\b", lambda found: words[found[0]], text)


def helper_name(helper: str, dtype: np.dtype) -> str:
    """The name of a helper, prefixed by that of the function that uses it, so that the texts of
    several functions can be joined without a clash.
    """
    return f"{NAME}_{helper}_{dtype.name}"


def python_helper(helper: str, dtype: np.dtype) -> str:
    """The complete Numba function of a helper for one type."""
    written = HELPERS[helper]
    parameters = ", ".join(part.split()[-1] for part in written.parameters.split(","))
    head = f'@njit(error_model="numpy")\ndef {helper_name(helper, dtype)}({parameters}):\n'
    return f"{head}{_body(python_text(written.python, dtype))}\n\n\n"


def cuda_helper(helper: str, dtype: np.dtype) -> str:
    """The complete CUDA device function of a helper for one type."""
    written = HELPERS[helper]
    parameters = cuda_text(written.parameters, dtype)
    returned = C_TYPES[dtype.name]
    head = f"__device__ __forceinline__ {returned} {helper_name(helper, dtype)}({parameters}) {{\n"
    return f"{head}{_body(cuda_text(written.cuda, dtype))}\n}}\n"


def _body(text: str) -> str:
    lines = text.strip("\n").rstrip().splitlines()
    margin = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(f"    {line[margin:]}" for line in lines)
