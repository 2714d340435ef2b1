"""A Python process that uses redis-py's lock, as lock/benches tells it by lines.

A line on stdin is `ID WHO COMMAND ARGUMENT…`, a line on stdout `ID ok ANSWER` or `ID failed EXCEPTION`. The argument is
Redis' address. The answers are as those of lock/benches/locks/worker.rs: holds, nanoseconds, and 0 for allocations, which
Python does not count.

    ping
    contend lock NAME CONTENDERS MILLIS   each thread acquires and releases until the time is over, at least once
    hand-off NAME TIMES                   one client has the lock and another one waits
"""

import random
import sys
import threading
import time

import redis

LEASE = 30
# As in worker.rs.
MAX_HELD_TIME = 0.25


def contend(client, kind, name, contenders, millis):
    if kind != "lock":
        raise ValueError(f"redis-py has no {kind}")
    contenders, span = int(contenders), int(millis) * 1_000_000
    begin, holds = threading.Barrier(contenders + 1), []

    def contender():
        begin.wait()
        begun, own = time.monotonic_ns(), 0
        while True:
            lock = client.lock(name, timeout=LEASE)
            lock.acquire()
            lock.release()
            own += 1
            if time.monotonic_ns() - begun >= span:
                break
        holds.append(own)

    threads = [threading.Thread(target=contender) for _ in range(contenders)]
    for thread in threads:
        thread.start()
    begin.wait()
    begun = time.monotonic_ns()
    for thread in threads:
        thread.join()
    took = time.monotonic_ns() - begun
    if len(holds) < contenders:
        raise RuntimeError("a contender has failed: see the log")
    return f"{sum(holds)} {took} 0"


def hand_off(client, other, name, times):
    total = 0
    for _ in range(int(times)):
        held = client.lock(name, timeout=LEASE)
        held.acquire()
        acquired = []

        def wait():
            lock = other.lock(name, timeout=LEASE)
            lock.acquire()
            acquired.append(time.monotonic_ns())
            lock.release()

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(random.random() * MAX_HELD_TIME)
        released = time.monotonic_ns()
        held.release()
        waiting.join()
        total += acquired[0] - released
    return f"{times} {total} 0"


def main():
    client, other = redis.Redis.from_url(sys.argv[1]), redis.Redis.from_url(sys.argv[1])
    commands = {
        "ping": lambda: client.ping() and other.ping() and "0 0 0",
        "contend": lambda *words: contend(client, *words),
        "hand-off": lambda *words: hand_off(client, other, *words),
    }
    for line in sys.stdin:
        number, _who, command, *words = line.split()
        try:
            answer = commands[command](*words)
        except Exception as failure:
            print(f"{number} failed {failure!r}", flush=True)
        else:
            print(f"{number} ok {answer}", flush=True)


if __name__ == "__main__":
    main()
