#!/usr/bin/env bash
# etcd 3.4.23 and 3.5.16 (Debian 12's and 13's), three nodes: the leader stands still for 9 s and goes on. In most rounds leases of 5 s that the others had
# renewed each second, and answered with 5 s each time, are gone then. Needs apt and Python 3, and a minute. Exits with 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'xargs kill -KILL <"$folder/pids" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download etcd-server >apt.log 2>&1 || { tail apt.log; exit 2; }
dpkg-deb -x etcd-server_*.deb .
cat >probe.py <<'PY'
import json, signal, socket, subprocess, sys, time, urllib.request

def free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"

clients, peers = [free() for _ in range(3)], [free() for _ in range(3)]
cluster = ",".join(f"n{n}={peer}" for n, peer in enumerate(peers))
nodes = [subprocess.Popen(
    ["usr/bin/etcd", "--name", f"n{n}", "--data-dir", f"data{n}", "--listen-client-urls", client, "--advertise-client-urls", client,
     "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster],
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for n, (client, peer) in enumerate(zip(clients, peers))]
open("pids", "w").write(" ".join(str(node.pid) for node in nodes))

def ask(node, path, body):
    request = urllib.request.Request(f"{clients[node]}/v3/{path}", json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request, timeout=1))

def try_each(asked, path, body):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for node in asked:
            try:
                return ask(node, path, body)
            except OSError:
                time.sleep(0.05)
    raise TimeoutError(path)

def leader():
    while True:
        status = try_each(range(3), "maintenance/status", {})
        for node in range(3):
            try:
                its = ask(node, "maintenance/status", {})
            except OSError:
                continue
            if its["header"]["member_id"] == status.get("leader"):
                return node, status["version"]
        time.sleep(0.1)

ROUNDS, LEASES, hit, gone = 4, 12, 0, 0
for turn in range(ROUNDS):
    stopped, version = leader()
    others, leases = [n for n in range(3) if n != stopped], [str(turn * LEASES + n) for n in range(1, LEASES + 1)]
    for lease in leases:
        try_each(others, "lease/grant", {"ID": lease, "TTL": "5"})
    left = lambda lease: int(try_each(others, "lease/keepalive", {"ID": lease})["result"].get("TTL", 0))
    nodes[stopped].send_signal(signal.SIGSTOP)
    end = time.monotonic() + 9
    while time.monotonic() < end:
        assert all(left(lease) == 5 for lease in leases), "one was gone before the node went on"
        time.sleep(1)
    nodes[stopped].send_signal(signal.SIGCONT)
    time.sleep(3)
    now = sum(left(lease) == 0 for lease in leases)
    hit, gone = hit + (now > 0), gone + now
    time.sleep(2)
print(f"etcd {version}, three nodes, the leader stood still for 9 s: in {hit} of {ROUNDS} rounds leases of 5 s were gone that the others had renewed each second, "
      f"{gone} of {ROUNDS * LEASES} in all")
sys.exit(0 if gone else 1)
PY
python3 probe.py
