"""A parameter server that workers call, by RPyC or by Pyro5."""

import argparse
import os
import time

from train_breaks import add_arguments, fail


class Parameters:
    """What the workers add their gradients to."""

    def __init__(self):
        self.values = {}

    def push(self, rank, step, value):
        """Take a gradient, and return how many there are of this step."""
        self.values.setdefault(step, {})[rank] = value
        return len(self.values[step])

    def pull(self, step):
        """Return the sum of a step."""
        return sum(self.values[step].values())


def serve(library, port):
    """Serve until the process is ended."""
    if library == "rpyc":
        import rpyc
        from rpyc.utils.server import ThreadedServer

        class Service(rpyc.Service):
            parameters = Parameters()

            def exposed_push(self, *words):
                return self.parameters.push(*words)

            def exposed_pull(self, step):
                return self.parameters.pull(step)

        ThreadedServer(Service, port=port).start()
    import Pyro5.api

    daemon = Pyro5.api.Daemon(host=os.environ["OWN"], port=port)
    daemon.register(Pyro5.api.expose(Parameters)(), objectId="parameters")
    print("parameters are served at", daemon.locationStr, flush=True)
    daemon.requestLoop()


def connected(library, host, port):
    """Return what is called."""
    if library == "rpyc":
        import rpyc

        config = {"sync_request_timeout": 12}
        return rpyc.connect(host, port, config=config).root
    import Pyro5.api

    Pyro5.config.COMMTIMEOUT = 12
    return Pyro5.api.Proxy(f"PYRO:parameters@{host}:{port}")


def main():
    """Push and pull; fail as told."""
    parser = add_arguments(argparse.ArgumentParser())
    parser.add_argument("--library", default="rpyc")
    parser.add_argument("--server", default="")
    parser.add_argument("--port", type=int, default=18861)
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--wanted", type=int, default=2)
    args = parser.parse_args()
    if not args.server:
        serve(args.library, args.port)
    root = connected(args.library, args.server, args.port)
    for step in range(args.steps):
        if step == args.steps // 2:
            fail(args.fail, args.number, args.rank)
        until = time.monotonic() + 12
        while root.push(args.number, step, 1.0) < args.wanted:
            if time.monotonic() > until:
                raise TimeoutError(f"step {step}: not all {args.wanted} workers pushed within 12 s")
            time.sleep(0.1)
        print(f"worker {args.number} step {step} sum {root.pull(step)}", flush=True)
    print(f"worker {args.number} finished", flush=True)


main()
