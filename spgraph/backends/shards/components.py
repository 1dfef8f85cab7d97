"""Components over shards: what one shard does between two exchanges."""

from __future__ import annotations

from typing import Any, Protocol

from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array

Forest = Any  # labels of all vertices, after the edges that a shard has followed so far


class ComponentsShard(Protocol):
    """What the components of a graph in shards ask of the kernels of one shard, `ComponentsShard`
    of a backend. Messages are arrays of 64-bit words on the device, with up to `capacity` pairs of
    labels, of one length for all shards. Nothing waits for the device.
    """

    nonempty: Array  # a bit for each own vertex: whether it has edges

    def pairs_words(self, capacity: int) -> int:
        """The 64-bit words of a message that `outside` makes."""

    def outside(self, visited: Array, message: Array, capacity: int) -> Array:
        """Write the edges of the own vertices that are not in the bitmap `visited` to `message`.
        Returns memory for the labels of their ends, for `settle`.
        """

    def settle(
        self,
        visited: Array,
        table: Array,
        message: Array,
        places: Array,
        capacity: int,
        round_: int,
        host_counter: int,
    ) -> Array:
        """The labels of own vertices from what `outside` made on all shards, at the addresses
        `places`. The word of the host's memory at the address `host_counter` becomes twice the
        number of the round, and 1 more if the labels are void.
        """

    def forest(self, matrix: Matrix, sampled: bool) -> Forest:
        """The components of the own rows, a matrix of the whole's shape; if `sampled`, of two edges
        of each vertex.
        """

    def send_roots(self, forest: Forest, capacity: int) -> Array:
        """The message to all shards: the roots that other shards' vertices have in `forest`."""

    def receive_roots(self, forest: Forest, me: int, came: Array, capacity: int) -> Array:
        """Merge the roots that all shards have sent into the forest of shard `me`. Returns the
        message to all shards about what that has changed.
        """

    def join(self, forest: Forest, answers: Array, report: Array, capacity: int) -> None:
        """Merge what all shards returned from `receive_roots` into the forest. `report` rises to
        the length of the longest list, which may be more than fitted.
        """

    def follow(self, forest: Forest, came: Array, capacity: int) -> None:
        """Follow the edges that a sampled forest left out, after an exchange of roots."""

    def finish(self, forest: Forest) -> Array:
        """The labels of own vertices."""
