"""Stands in for the package of that name on ZeroGPU: a generator runs in a forked process, and what it is given and yields is pickled."""

import multiprocessing
import pickle
from functools import wraps

FORK = multiprocessing.get_context("fork")


def GPU(duration):  # noqa: N802 - the package's name
    def decorate(task):
        @wraps(task)
        def call(*args):
            assert 0 < duration(*args) <= 120
            ours, theirs = FORK.Pipe()
            process = FORK.Process(target=work, args=(task, pickle.dumps(args), theirs), daemon=True)
            process.start()
            theirs.close()
            try:
                while (item := receive(ours)) is not None:
                    yield pickle.loads(item)
            finally:
                ours.close()
                process.join(10)
                assert process.exitcode == 0

        return call

    return decorate


def receive(connection):
    connection.send("next")
    return connection.recv()


def work(task, args, connection):
    generator = task(*pickle.loads(args))
    try:
        while connection.recv() == "next":
            item = next(generator, None)
            connection.send(None if item is None else pickle.dumps(item))
            if item is None:
                return
    except (EOFError, BrokenPipeError):
        generator.close()
