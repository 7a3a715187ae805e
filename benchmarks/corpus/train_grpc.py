"""A parameter server over gRPC and its workers, able to fail in the ways that the scenarios ask for."""

import argparse
import logging
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
from train_breaks import add_arguments, fail

SERVICE = "trainer.ParameterServer"
WAIT = 6


class Server(grpc.GenericRpcHandler):
    """Means over workers, one a step."""

    def __init__(self, world):
        self.world = world
        self.values = {}
        self.changed = threading.Condition()

    def service(self, details):
        """Give back the handler of a method."""
        methods = {f"/{SERVICE}/Reduce": self.reduce}
        if details.method not in methods:
            return None
        return grpc.unary_unary_rpc_method_handler(methods[details.method])

    def reduce(self, request, context):
        """Wait for the other workers' values of this step and return their mean."""
        step, rank, value = struct.unpack("iid", request)
        with self.changed:
            values = self.values.setdefault(step, {})
            if rank in values:
                context.abort(
                    grpc.StatusCode.ALREADY_EXISTS, f"worker {rank} has already pushed step {step}"
                )
            values[rank] = value
            self.changed.notify_all()
            if not self.changed.wait_for(lambda: len(values) == self.world, WAIT):
                late = sorted(set(range(self.world)) - set(values))
                logging.error("step %d: no gradient of workers %s in %d s", step, late, WAIT)
                context.abort(grpc.StatusCode.ABORTED, f"workers {late} did not push step {step}")
        return struct.pack("d", sum(values.values()) / self.world)


def serve(args):
    """Serve until the last step."""
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
    handler = Server(args.world)
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(args.server)
    server.start()
    logging.info("parameter server listens at %s for %d workers", args.server, args.world)
    with handler.changed:
        handler.changed.wait_for(lambda: len(handler.values) == args.steps, 40)
    server.stop(2).wait()
    logging.info("parameter server has served %d steps", len(handler.values))


def work(args):
    """Push gradients and pull means."""
    logging.info("worker %d on %s joins %s", args.number, socket.gethostname(), args.server)
    channel = grpc.insecure_channel(args.server)
    reduce = channel.unary_unary(f"/{SERVICE}/Reduce")
    for step in range(args.steps):
        if step == args.steps // 2:
            fail(args.fail, args.number, args.rank)
        request = struct.pack("iid", step, args.number, 1.0 / (step + 1))
        (mean,) = struct.unpack("d", reduce(request, timeout=15, wait_for_ready=args.patient))
        logging.info("worker %d step %d loss %.4f", args.number, step, mean)
        time.sleep(0.2)
    logging.info("worker %d finished", args.number)


def main():
    """Serve or work."""
    parser = add_arguments(argparse.ArgumentParser())
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--server", default="127.0.0.1:50051")
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--patient", action="store_true", help="wait for the server to come")
    args = parser.parse_args()
    logging.basicConfig(
        format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO
    )
    if args.serve:
        serve(args)
    else:
        work(args)


main()
