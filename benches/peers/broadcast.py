"""How fast a broadcast of so many bytes reaches another host, by MPI (mpi4py) or by gloo (torch): from where the first host
has it to where the second has all of it. Both have one clock.

  mpirun -n 2 ... python broadcast.py mpi BYTES
  python broadcast.py gloo BYTES RANK ADDRESS:PORT     (on both hosts; GLOO_SOCKET_IFNAME names the interface)

Prints the median and the best of five in Gbit/s, on the second host. `cargo bench -p hectare-daemon --bench hosts -- whole` runs
it beside ours, with the Python that HECTARE_PYTHON names."""
import statistics
import sys
import time

ROUNDS = 6


def measure(rank, values, barrier, broadcast):
    """`values` is an array of 64-bit integers."""
    figures = []
    for turn in range(ROUNDS):
        values[1:] = turn
        barrier()
        if rank == 0:
            values[0] = time.monotonic_ns()
        broadcast()
        if rank == 1:
            took = time.monotonic_ns() - int(values[0])
            assert int(values[-1]) == turn
            figures.append(len(values) * 64 / took)
    if rank == 1:
        # The first one makes the connections.
        figures = figures[1:]
        print(f"median {statistics.median(figures):.3f}\nbest {max(figures):.3f}", flush=True)


def mpi(size):
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    values = numpy.zeros(size // 8, dtype=numpy.int64)
    measure(comm.Get_rank(), values, comm.Barrier, lambda: comm.Bcast(values, root=0))


def gloo(size, rank, address):
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"tcp://{address}", rank=int(rank), world_size=2)
    values = torch.zeros(size // 8, dtype=torch.int64)
    measure(int(rank), values, dist.barrier, lambda: dist.broadcast(values, src=0))
    dist.destroy_process_group()


if __name__ == "__main__":
    kind, size, *rest = sys.argv[1:]
    {"mpi": mpi, "gloo": gloo}[kind](int(size), *rest)
