# Lines of numbers to columns: every thread takes chunks of whole lines. A line has an optional
# letter, vertex ids and an optional value, separated by blanks or, where `commas`, by a comma among
# blanks. A line that is not plainly right ends all threads' work: the caller then goes line by line
# in Python, and names it. The text ends with a line feed.
#
# Reals: w * 10**q of up to 19 digits is rounded by one product of w and the leading 128 bits of
# 5**q (Lemire, Number Parsing at a Gigabyte per Second, 2021), right in all but a few cases; those,
# and infinities, NaN and longer numbers, become a NaN whose lower 48 bits are their place in the
# text, where the caller parses them.
# No preamble but the header.

BLANK, LINE_FEED, RETURN, COMMA = np.uint64(32), np.uint64(10), np.uint64(13), np.uint64(44)
PLUS, MINUS, POINT, ZERO = np.uint64(43), np.uint64(45), np.uint64(46), np.uint64(48)
HASH, PERCENT, LOWER_C, LOWER_E = np.uint64(35), np.uint64(37), np.uint64(99), np.uint64(101)
NO, ONE, TEN, TAB = np.uint64(0), np.uint64(1), np.uint64(10), np.uint64(9)
HALF, LOW_HALF, ALL = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFFFFFFFFFF)
TOP, TEN_19 = np.uint64(63), np.uint64(10**19)
MARK = np.uint64(0x7FF9 << 48)
# kinds of values, and of comments: from # or % on, lines with %, lines with the word c
NONE, SIGNED, UNSIGNED, REAL = 0, 1, 2, 3
ANYWHERE, PERCENT_LINES, C_LINES = 1, 2, 3


@inner
def after_blanks(text, p):
    """The next place that is no blank; a carriage return is one only in front of a line feed."""
    c = np.uint64(text[p])
    while c == BLANK or (c >= TAB and c <= RETURN and c != LINE_FEED):
        if c == RETURN and np.uint64(text[p + ONE]) != LINE_FEED:
            break
        p += ONE
        c = np.uint64(text[p])
    return p


@inner
def after_comment(text, p):
    """The next line, 0 where this one has a carriage return within."""
    c = np.uint64(text[p])
    while c != LINE_FEED:
        if c == RETURN and np.uint64(text[p + ONE]) != LINE_FEED:
            return NO
        p += ONE
        c = np.uint64(text[p])
    return p + ONE


@inner
def after_line(text, p, comment):
    """The next line, if no field is left in this one, else 0."""
    c = np.uint64(text[p])
    if c == LINE_FEED:
        return p + ONE
    if comment == ANYWHERE and c in (HASH, PERCENT):
        return after_comment(text, p)
    return NO


@inner
def field(text, p, commas):
    """The next field's place, 0 where no separator is in front of it."""
    q = after_blanks(text, p)
    if commas and np.uint64(text[q]) == COMMA:
        return after_blanks(text, q + ONE)
    return q if q != p else NO


@inner
def digits(text, p, number):
    """(the number whose digits go on at p, the place behind them)"""
    digit = np.uint64(text[p]) - ZERO
    while digit < TEN:
        number = number * TEN + digit
        p += ONE
        digit = np.uint64(text[p]) - ZERO
    return number, p


@inner
def high_product(a, b):
    """The upper 64 of the 128 bits of a * b."""
    a0, a1, b0, b1 = a & LOW_HALF, a >> HALF, b & LOW_HALF, b >> HALF
    middle = a1 * b0 + (a0 * b0 >> HALF)
    return a1 * b1 + (middle >> HALF) + ((a0 * b1 + (middle & LOW_HALF)) >> HALF)


@inner
def nearest(w, q, powers, tens):
    """The bits of the double nearest to w * 10**q, MARK where that is not clear from this."""
    if w >> np.uint64(53) == NO and q <= 0 and q >= -22:  # both are exact: one rounding
        return np.float64(np.float64(w) / tens[-q]).view(np.uint64)
    if w == NO:
        return NO
    place = q + powers.shape[0] // 2
    if place < 0 or place >= powers.shape[0]:
        return MARK
    zeros, step = np.uint64(0), HALF
    while step != NO:
        if w >> (np.uint64(64) - step) == NO:
            w <<= step
            zeros += step
        step >>= ONE
    high, low = high_product(w, powers[place, 0]), w * powers[place, 0]
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        more = high_product(w, powers[place, 1])
        low += more
        if low < more:
            high += ONE
    if low == ALL and (q < -27 or q > 55):
        return MARK
    upper = high >> TOP
    shift = upper + np.uint64(9)
    mantissa = high >> shift
    exponent = ((217706 * q) >> 16) + 1086 + np.int64(upper) - np.int64(zeros)
    halfway = low <= ONE and q >= -4 and q <= 23 and mantissa << shift == high
    if halfway and mantissa & np.uint64(3) == ONE:
        mantissa &= ~ONE  # to even
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    if mantissa >> np.uint64(53) != NO:
        mantissa >>= ONE
        exponent += 1
    if exponent <= 0 or exponent >= 2047:
        return MARK
    return (mantissa & np.uint64((1 << 52) - 1)) | (np.uint64(exponent) << np.uint64(52))


@inner
def real(text, p, powers, tens):
    """(the bits of a real or its mark, the place behind it)"""
    start = p
    sign = np.uint64(text[p]) == MINUS
    if sign or np.uint64(text[p]) == PLUS:
        p += ONE
    first = p
    w, p = digits(text, p, NO)
    count = p - first
    q = np.int64(0)
    if np.uint64(text[p]) == POINT:
        before = p + ONE
        w, p = digits(text, before, w)
        q = -np.int64(p - before)
        count += p - before
    known = count > NO
    if count > np.uint64(19):  # were it not for zeros in front, w would have overflowed
        known = False
    if np.uint64(text[p]) | np.uint64(32) == LOWER_E and known:
        p += ONE
        down = np.uint64(text[p]) == MINUS
        if down or np.uint64(text[p]) == PLUS:
            p += ONE
        e, after = digits(text, p, NO)
        known = after > p and after - p < np.uint64(5)
        q += -np.int64(e) if down else np.int64(e)
        p = after
    bits = nearest(w, q, powers, tens) if known else MARK
    if bits == MARK:
        c = np.uint64(text[p])
        while c > BLANK and c != COMMA and c != HASH and c != PERCENT:
            p += ONE
            c = np.uint64(text[p])
        return MARK | start, p
    return (bits | (ONE << TOP) if sign else bits), p


@inner
def natural(text, p):
    """(a number below 2**64, the place behind it, which is 0 for none or a larger one)"""
    start = p
    while np.uint64(text[p]) == ZERO:
        p += ONE
    number, after = digits(text, p, NO)
    large = after - p == np.uint64(20) and np.uint64(text[p]) == ZERO + ONE
    if after == start or (after - p > np.uint64(19) and not (large and number >= TEN_19)):
        return NO, NO
    return number, after


@inner
def whole(text, p, kind):
    """(the bits of an integer of 64 bits, the place behind it, which is 0 for none)"""
    minus = np.uint64(text[p]) == MINUS
    number, after = natural(text, p + np.uint64(minus))
    limit = ALL if kind == UNSIGNED else ALL >> ONE
    if minus:
        limit += ONE  # 0 or 2**63
    return (NO - number if minus else number), (NO if number > limit else after)


@inner
def parse_line(text, p, letter, commas, comment, kind, low, high, powers, tens, ids, values, k):
    """The place of the next line, 0 if this one is not plainly right. Its fields go to ids[:, k]
    and values[k].
    """
    if letter != NO:
        if np.uint64(text[p]) != letter:
            return NO
        p = field(text, p + ONE, False)
        if p == NO:
            return NO
    for f in range(ids.shape[0]):
        if f > 0:
            p = field(text, p, commas)
            if p == NO:
                return NO
        id, after = natural(text, p)
        if after == NO or id < low or id > high[f]:
            return NO
        ids[f, k] = id
        p = after
    if kind != NONE:
        if ids.shape[0]:
            p = field(text, p, commas)
            if p == NO:
                return NO
        if kind == REAL:
            values[k], p = real(text, p, powers, tens)
        else:
            values[k], p = whole(text, p, kind)
            if p == NO:
                return NO
    return after_line(text, after_blanks(text, p), comment)


@kernel
def parse_lines(
    thread, threads, sync, text, cuts, ticket, letter, commas, comment, kind, low, high, powers,
    tens, places, counts, failed, ids, values,
):  # fmt: skip
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk + 1 >= cuts.size or failed[0]:
            return
        p, end, k = np.uint64(cuts[chunk]), np.uint64(cuts[chunk + 1]), np.uint64(places[chunk])
        while p < end:
            while np.uint64(text[p]) == BLANK or np.uint64(text[p]) == TAB:
                p += ONE
            c, d = np.uint64(text[p]), np.uint64(text[p + ONE]) if p + ONE < end else LINE_FEED
            word = c == LOWER_C and d in (BLANK, TAB, RETURN, LINE_FEED)
            if (comment == PERCENT_LINES and c == PERCENT) or (comment == C_LINES and word):
                p = after_comment(text, p)
            else:
                p = after_blanks(text, p)
                after = after_line(text, p, comment)
                if after == NO:
                    after = parse_line(
                        text,
                        p,
                        letter,
                        commas,
                        comment,
                        kind,
                        low,
                        high,
                        powers,
                        tens,
                        ids,
                        values,
                        k,
                    )
                    k += ONE
                p = after
            if p == NO:
                failed[0] = 1
                return
        counts[chunk] = k - np.uint64(places[chunk])
