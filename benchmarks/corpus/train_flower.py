"""Rounds of federated averaging with Flower, able to fail in the ways that the scenarios ask for."""

import argparse
from pathlib import Path

import flwr as fl
import numpy as np
from train_breaks import add_arguments, fail


class Client(fl.client.NumPyClient):
    """A client with one vector."""

    def __init__(self, args, number):
        self.args = args
        self.number = number
        self.rounds = 0

    def get_parameters(self, config):  # noqa: ARG002
        return [np.zeros(8)]

    def fit(self, parameters, config):  # noqa: ARG002
        self.rounds += 1
        if self.rounds == 3:
            fail(self.args.fail, self.number, self.args.rank)
        return [parameters[0] + 1.0], 10, {}

    def evaluate(self, parameters, config):  # noqa: ARG002
        return float(parameters[0].sum()), 10, {"rounds": self.rounds}


def main():
    """Serve, or take part."""
    parser = add_arguments(argparse.ArgumentParser())
    parser.add_argument("--server", required=True)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--clients", type=int, default=2)
    args = parser.parse_args()
    if args.serve:
        strategy = fl.server.strategy.FedAvg(
            min_fit_clients=args.clients,
            min_available_clients=args.clients,
            min_evaluate_clients=args.clients,
            accept_failures=False,
        )
        fl.server.start_server(
            server_address=args.server,
            config=fl.server.ServerConfig(num_rounds=6, round_timeout=15),
            strategy=strategy,
        )
        return
    if args.data:
        print(len(Path(args.data).read_text()), "samples")
    client = Client(args, args.number).to_client()
    fl.client.start_client(server_address=args.server, client=client, max_wait_time=20)


main()
