"""A Python process that is told by lines what to do, so that a test in another language can watch kazoo.

1. A line on stdin is `ID WHO COMMAND ARGUMENT…`. WHO is a thread of that name, made when it is first named, and has locks
   of its own.
2. The thread runs the command; the threads do not wait for each other.
3. Each line on stdout is `ID ok ANSWER` or `ID failed EXCEPTION`, in the order in which they end.

The end of stdin ends the process, whoever still waits for a lock. Its one argument is the address, `host:port`. Times are
milliseconds; a lock's KIND is `lock`, as Curator names its nodes, or `stock`, as kazoo does.

    ping                  a round trip: what the server has said before, the client has heard
    acquire KIND PATH     waits
    try KIND PATH WAIT    true, false
    release KIND PATH
    number KIND PATH      1 where this thread holds it, else 0
    sections KIND PATH N  N times: take it, read PATH-counter, write one more, free it. The answer is the most that were
                          inside at once, as seen here: each who is in has a node in PATH-inside. The test makes both
"""

import os
import queue
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.recipe.lock import Lock


class CuratorLock(Lock):
    """kazoo's lock among Curator's.

    Curator goes by what follows the last `lock-` of a name; kazoo by what precedes the sequence. With both names changed
    each side finds the other's nodes, and at their right place.
    """

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["lock-"]


KINDS = {"lock": CuratorLock, "stock": Lock}


class Worker(threading.Thread):
    """One WHO."""

    def __init__(self, client, answer):
        super().__init__(daemon=True)
        self.client = client
        self.answer = answer
        self.commands = queue.SimpleQueue()
        self.locks = {}

    def run(self):
        while True:
            number, command = self.commands.get()
            try:
                outcome = getattr(self, "do_" + command[0])(*command[1:])
            except Exception as failure:
                self.answer(f"{number} failed {failure!r}")
            else:
                self.answer(f"{number} ok {outcome}")

    def lock(self, kind, path):
        if (kind, path) not in self.locks:
            self.locks[kind, path] = KINDS[kind](self.client, path)
        return self.locks[kind, path]

    def do_ping(self):
        return str(self.client.exists("/") is not None).lower()

    def do_acquire(self, kind, path):
        self.lock(kind, path).acquire()
        return "acquired"

    def do_try(self, kind, path, wait):
        lock = self.lock(kind, path)
        try:
            had = lock.acquire(timeout=int(wait) / 1000) if int(wait) else lock.acquire(blocking=False)
        except LockTimeout:
            had = False
        return str(had).lower()

    def do_release(self, kind, path):
        self.lock(kind, path).release()
        return "released"

    def do_number(self, kind, path):
        return int(self.lock(kind, path).is_acquired)

    def do_sections(self, kind, path, times):
        zk, lock, counter, inside = self.client, self.lock(kind, path), path + "-counter", path + "-inside"
        most = 0
        for _ in range(int(times)):
            with lock:
                own = zk.create(inside + "/in-", ephemeral=True, sequence=True)
                most = max(most, len(zk.get_children(inside)))
                before = int(zk.get(counter)[0])
                zk.set(counter, str(before + 1).encode())
                zk.delete(own)
        return most


def main():
    client = KazooClient(sys.argv[1])
    client.start()
    writing = threading.Lock()

    def answer(line):
        with writing:
            print(line.replace("\n", " "), flush=True)

    workers = {}
    for line in sys.stdin:
        number, who, *command = line.split()
        if who not in workers:
            workers[who] = Worker(client, answer)
            workers[who].start()
        workers[who].commands.put((number, command))
    # Not stop(): those who wait would fail one after the other.
    os._exit(0)


if __name__ == "__main__":
    main()
