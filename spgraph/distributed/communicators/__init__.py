"""How shards exchange arrays: the class `Communicator`, and its three kinds."""

from spgraph.distributed.communicators.checks import Op
from spgraph.distributed.communicators.communicator import Communicator
from spgraph.distributed.communicators.local import LocalCommunicator
from spgraph.distributed.communicators.mpi import MpiCommunicator
from spgraph.distributed.communicators.nccl import NcclCommunicator
from spgraph.distributed.communicators.store import TcpStore

__all__ = [
    "Communicator",
    "LocalCommunicator",
    "MpiCommunicator",
    "NcclCommunicator",
    "Op",
    "TcpStore",
]
