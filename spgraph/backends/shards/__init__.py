"""What loops over shards and the backends that run their kernels agree on."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

R = TypeVar("R")

# The part of one shard in a loop: it yields what it needs of the others, as (request, data), is
# sent the answer, and returns what it has found. All shards make the same requests:
# - ("gather", (part, sizes)): the parts of all shards, joined, of these sizes; "gather_own": in
#   memory that no other shard has;
# - ("reduce", (part, sizes)), ("union", ...): its own part of the sum of all vectors, of the union
#   of all bitmaps;
# - ("send", (arrays, sizes, whole)), an array for each shard, how much comes from each, and an
#   array for all of that: `whole`, when it has come;
# - ("counts", (array, round, part)): (what the kernels of all shards have counted, in rows, their
#   sums), on the host, and the whole of `part`, a part that travels with them and the array where
#   those of all shards come, joined, or None;
# - ("meet", anything): the same, once all devices have come there; "meet_processes": the same where
#   there are several processes.
Steps = Generator[tuple[str, Any], Any, R]
