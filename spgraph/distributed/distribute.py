"""distribute: divide a Matrix into shards of rows, one or more on each device of each process."""

from __future__ import annotations

from collections.abc import Sequence

from spgraph.backends.shards.buffers import Buffers
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array, check_device, import_cupy
from spgraph.distributed.communicators import (
    Communicator,
    LocalCommunicator,
    NcclCommunicator,
)
from spgraph.distributed.communicators.checks import check_devices, check_most
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.partition import Partition, check_shards
from spgraph.distributed.containers.partitioners import partition as divided
from spgraph.distributed.containers.placement import Placement
from spgraph.errors import BackendUnavailable, DimensionMismatch, DomainMismatch
from spgraph.steps import backend

EXCHANGES = ("auto", "nccl", "peer")


def distribute(
    A: Matrix,
    shards: int,
    *,
    devices: str | Sequence[str] | None = None,
    partition: str | Sequence[int] | Array = "edges",
    communicator: Communicator | None = None,
    exchange: str = "auto",
) -> DistributedMatrix:
    """`A` in `shards` of rows: `A.distribute(shards)`, where `devices`, `partition`, `communicator`
    and `exchange` are explained.
    """
    if isinstance(A, DistributedMatrix):
        A = A.gather()
    if devices is None and communicator is None:
        devices = A.device.partition(":")[0]
    comm = chosen("distribute", shards, devices, communicator, exchange)
    rows = divided(A, comm.num_shards, partition)
    return DistributedMatrix.spread(A, placed(rows, comm, exchange))


def placed(rows: Partition, communicator: Communicator, exchange: str) -> Placement:
    """The Placement of this partition, with memory that all GPUs write if `exchange` allows it."""
    return Placement(rows, communicator, _peers(communicator, exchange), exchange != "auto")


def _peers(communicator: Communicator, exchange: str) -> Buffers | None:
    """Memory that all GPUs write, a backend's `PeerBuffers` or `ProcessBuffers`; None where they
    cannot, or `exchange` is 'nccl'.
    """
    on = backend(communicator.devices[0])
    if communicator.processes > 1:
        return _process_buffers(communicator, exchange)
    one_each = len(set(communicator.devices)) == communicator.num_shards
    kinds = {device.partition(":")[0] for device in communicator.devices}
    able = one_each and len(kinds) == 1 and hasattr(on, "PeerBuffers")
    if exchange == "nccl" or not able or not 1 < communicator.num_shards <= on.MOST_PEERS:
        if exchange == "peer":
            raise ValueError(
                "distribute: exchange: 'peer' takes 2 to 8 shards, each on a GPU of its own, "
                f"got {communicator.num_shards} shards on "
                f"{', '.join(communicator.devices)}"
            )
        return None
    try:
        return on.PeerBuffers([int(device.partition(":")[2]) for device in communicator.devices])
    except BackendUnavailable:
        if exchange == "peer":
            raise
        return None  # these GPUs do not reach each other's memory


def _process_buffers(communicator: Communicator, exchange: str) -> Buffers | None:
    """The same of several processes with a GPU each, which all find out together."""
    mapped, on = None, backend(communicator.devices[0])
    if isinstance(communicator, NcclCommunicator) and exchange != "nccl":
        if not communicator.mapping_tried:
            communicator.mapping_tried = True
            device = int(communicator.devices[0].partition(":")[2])
            communicator.mapped = on.map_memory(communicator, device)
        mapped = communicator.mapped
    if mapped is None and exchange == "peer":
        raise BackendUnavailable(
            "distribute: exchange: 'peer' takes 2 to 8 processes of one host, which can map the "
            f"memory of each other's GPUs, got {communicator.processes} that cannot: use 'nccl'"
        )
    return None if mapped is None else on.ProcessBuffers(mapped)


def chosen(
    name: str,
    shards: int,
    devices: str | Sequence[str] | None,
    communicator: Communicator | None,
    exchange: str,
) -> Communicator:
    """The communicator given, or a new one of this process for the devices. Errors begin with
    `name`, the function that the user has called.
    """
    shards = check_shards(shards)
    if exchange not in EXCHANGES:
        raise ValueError(f"{name}: exchange: expected one of {EXCHANGES}, got {exchange!r}")
    if communicator is None:
        check_most(f"{name}: shards", shards)
        return _communicator(name, shards, _devices(name, shards, devices), exchange)
    if devices is not None:
        raise ValueError(f"{name}: devices: the communicator given has its own; leave one out")
    check_communicator(name, communicator)
    if communicator.num_shards != shards:
        raise DimensionMismatch(
            f"{name}: shards: expected {communicator.num_shards} as the communicator has, "
            f"got {shards}"
        )
    return communicator


def check_communicator(name: str, communicator: object) -> None:
    """DomainMismatch for what is none of spgraph's, such as one of mpi4py."""
    if not isinstance(communicator, Communicator):
        raise DomainMismatch(
            f"{name}: communicator: expected a Communicator, such as LocalCommunicator(2) or "
            f"MpiCommunicator(comm), got {type(communicator).__name__}"
        )


def _devices(name: str, shards: int, devices: str | Sequence[str] | None) -> list[str]:
    """The device of each shard: as given; or all GPUs in turn for 'cuda'; None is the CPU."""
    if devices is None:
        devices = "cpu"
    if isinstance(devices, str):
        if devices != "cuda":
            return [check_device(devices)] * shards
        count = import_cupy().cuda.runtime.getDeviceCount()
        return [f"cuda:{p % count}" for p in range(shards)]
    named = check_devices(name, devices)
    if len(named) != shards:
        raise DimensionMismatch(
            f"{name}: devices: expected {shards}, one for each shard, got {len(named)}"
        )
    return named


def _communicator(name: str, shards: int, devices: list[str], exchange: str) -> Communicator:
    """NCCL for GPUs that have one shard each; otherwise a LocalCommunicator, which copies."""
    distinct = len(set(devices)) == shards and "cpu" not in devices
    if exchange != "auto" and not distinct:
        raise ValueError(
            f"{name}: exchange: {exchange!r} takes a GPU of its own for each shard, "
            f"got devices {', '.join(devices)}"
        )
    if distinct and shards > 1:
        return NcclCommunicator.for_devices(devices)
    return LocalCommunicator(shards, devices)
