"""Sum one over all ranks with Open MPI's own library."""

import ctypes

mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
world = ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world"))
number = ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_int"))
add = ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_op_sum"))
COUNT = 1 << 16
one, total, size = (ctypes.c_int * COUNT)(*[1] * COUNT), (ctypes.c_int * COUNT)(), ctypes.c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_size(world, ctypes.byref(size))
mpi.MPI_Allreduce(one, total, COUNT, number, add, world)
print(f"sum {total[0]} of {size.value} ranks", flush=True)
mpi.MPI_Finalize()
