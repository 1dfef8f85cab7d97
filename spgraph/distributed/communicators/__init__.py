"""How shards exchange arrays: the protocol `Communicator`, and three classes that implement it."""

from spgraph.distributed.communicators.local import LocalCommunicator
from spgraph.distributed.communicators.mpi import MpiCommunicator
from spgraph.distributed.communicators.nccl import NcclCommunicator
from spgraph.distributed.communicators.protocol import Communicator, Op
from spgraph.distributed.communicators.store import TcpStore

__all__ = [
    "Communicator",
    "LocalCommunicator",
    "MpiCommunicator",
    "NcclCommunicator",
    "Op",
    "TcpStore",
]
