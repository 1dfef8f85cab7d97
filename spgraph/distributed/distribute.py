"""distribute: a Matrix cut into blocks of rows, one or more for each device and process."""

from __future__ import annotations

from typing import Any

from spgraph.backends.cuda.exchange.peers import PeerBuffers
from spgraph.backends.cuda.search.search_peers import MOST_PEERS
from spgraph.containers import Matrix
from spgraph.containers.arrays import check_device, import_cupy
from spgraph.distributed.communicators import (
    Communicator,
    LocalCommunicator,
    NcclCommunicator,
)
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.partition import Partition, check_blocks, partition
from spgraph.distributed.containers.placement import Placement
from spgraph.errors import BackendUnavailable, DimensionMismatch

EXCHANGES = ("auto", "nccl", "peer")


def distribute(
    A: Matrix,
    blocks: int,
    *,
    devices: Any = None,
    partition_by: Any = "edges",
    communicator: Communicator | None = None,
    exchange: str = "auto",
) -> DistributedMatrix:
    """See `Matrix.distribute`."""
    if not isinstance(A.device, str):
        A = A.gather()
    if devices is None and communicator is None:
        devices = A.device.partition(":")[0]
    say = chosen("distribute", blocks, devices, communicator, exchange)
    cuts = _cuts(A, say.blocks, partition_by)
    return DistributedMatrix.spread(A, placed(cuts, say, exchange))


def placed(cuts: Partition, communicator: Communicator, exchange: str) -> Placement:
    """The Placement of blocks cut like that, with memory for the peer form where it is to run."""
    return Placement(cuts, communicator, _peers(communicator, exchange), exchange != "auto")


def _peers(communicator: Communicator, exchange: str) -> PeerBuffers | None:
    apart = len(set(communicator.devices)) == communicator.blocks
    able = apart and "cpu" not in communicator.devices and communicator.processes == 1
    if exchange == "nccl" or not able or not 1 < communicator.blocks <= MOST_PEERS:
        if exchange == "peer":
            raise ValueError(
                "distribute: exchange: 'peer' takes 2 to 8 blocks, each on a GPU of its own and "
                f"all in one process, got {communicator.blocks} blocks on "
                f"{', '.join(communicator.devices)}"
            )
        return None
    try:
        return PeerBuffers([int(device.partition(":")[2]) for device in communicator.devices])
    except BackendUnavailable:
        if exchange == "peer":
            raise
        return None  # these GPUs do not reach each other's memory


def chosen(
    name: str, blocks: int, devices: Any, communicator: Communicator | None, exchange: str
) -> Communicator:
    """The communicator given, or one of this process for the devices; `name` asks for it."""
    blocks = check_blocks(blocks)
    if exchange not in EXCHANGES:
        raise ValueError(f"{name}: exchange: expected one of {EXCHANGES}, got {exchange!r}")
    if communicator is None:
        return _communicator(name, blocks, _devices(name, blocks, devices), exchange)
    if devices is not None:
        raise ValueError(f"{name}: devices: the communicator given has its own; leave one out")
    if communicator.blocks != blocks:
        raise DimensionMismatch(
            f"{name}: blocks: expected {communicator.blocks} as the communicator has, got {blocks}"
        )
    return communicator


def _cuts(A: Matrix, blocks: int, how: Any) -> Partition:
    if A.nrows == A.ncols:
        return partition(A, blocks, how)
    if not isinstance(how, str):
        return Partition.from_owner(how, blocks, A.nrows)
    if how != "edges":
        raise DimensionMismatch(
            f"distribute: partition: expected 'edges' or an array for a matrix that is not square, "
            f"{A.nrows} x {A.ncols}, got {how!r}"
        )
    return Partition.by_edges(A._indptr, blocks)


def _devices(name: str, blocks: int, devices: Any) -> list[str]:
    """The device of every block: as given, or those of the kind in turn; None for the CPU."""
    if devices is None:
        devices = "cpu"
    if isinstance(devices, str):
        if devices != "cuda":
            return [check_device(devices)] * blocks
        count = import_cupy().cuda.runtime.getDeviceCount()
        return [f"cuda:{p % count}" for p in range(blocks)]
    named = [check_device(device) for device in devices]
    if len(named) != blocks:
        raise DimensionMismatch(
            f"{name}: devices: expected {blocks}, one for each block, got {len(named)}"
        )
    return named


def _communicator(name: str, blocks: int, devices: list[str], exchange: str) -> Communicator:
    """NCCL between GPUs that have one block each, plain copies elsewhere."""
    distinct = len(set(devices)) == blocks and "cpu" not in devices
    if exchange != "auto" and not distinct:
        raise ValueError(
            f"{name}: exchange: {exchange!r} takes a GPU of its own for each block, "
            f"got devices {', '.join(devices)}"
        )
    if distinct and blocks > 1:
        return NcclCommunicator.for_devices(devices)
    return LocalCommunicator(blocks, devices)
