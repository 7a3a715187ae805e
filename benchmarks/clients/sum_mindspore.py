"""Sum one over all workers with MindSpore."""

import os

import numpy
from mindspore import Tensor, communication, ops

communication.init()
if os.environ["MS_ROLE"] != "MS_SCHED":  # msrun starts the same program as its scheduler
    total = ops.AllReduce()(Tensor(numpy.ones(1 << 16, dtype="float32")))
    print(f"sum {int(total[0].asnumpy())} of {communication.get_group_size()} ranks", flush=True)
