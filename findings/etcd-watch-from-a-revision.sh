#!/usr/bin/env bash
# etcd 3.4.23 and 3.5.16 (Debian 12's and 13's): a watch from a revision that exists already, as Go's `concurrency.Mutex` waits for the one before it,
# tells of a deletion just after the watch's creation about 100 ms later; a watch from now on within a few. Needs apt and Python 3. Exits with 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "$(cat "$folder/pid" 2>/dev/null)" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download etcd-server >apt.log 2>&1 || { tail apt.log; exit 2; }
dpkg-deb -x etcd-server_*.deb .
cat >probe.py <<'PY'
import base64, http.client, json, socket, statistics, subprocess, sys, time

def free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

node, peer = free(), free()
at, between = f"http://127.0.0.1:{node}", f"http://127.0.0.1:{peer}"
etcd = subprocess.Popen(
    ["usr/bin/etcd", "--data-dir", "data", "--listen-client-urls", at, "--advertise-client-urls", at,
     "--listen-peer-urls", between, "--initial-advertise-peer-urls", between, "--initial-cluster", f"default={between}"],
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
open("pid", "w").write(str(etcd.pid))

def ask(path, body):
    connection = http.client.HTTPConnection("127.0.0.1", node, timeout=10)
    connection.request("POST", f"/v3/{path}", json.dumps(body))
    return connection.getresponse()

for _ in range(100):
    try:
        version = json.load(ask("maintenance/status", {}))["version"]
        break
    except (OSError, KeyError):
        time.sleep(0.1)

key = base64.b64encode(b"/door/1").decode()

def delays(of_past):
    seen = []
    for _ in range(40):
        revision = json.load(ask("kv/put", {"key": key, "value": key}))["header"]["revision"]
        watch = ask("watch", {"create_request": {"key": key, **({"start_revision": revision} if of_past else {})}})
        assert json.loads(watch.readline())["result"]["created"]
        begun = time.monotonic()
        ask("kv/deleterange", {"key": key}).read()
        while "DELETE" not in watch.readline().decode():
            pass
        seen.append((time.monotonic() - begun) * 1000)
        watch.close()
    return statistics.median(seen), max(seen)

(past, most_past), (now, most_now) = delays(True), delays(False)
etcd.kill()
print(f"etcd {version}, a key deleted just after the watch was created, 40 times:")
print(f"  watched from the revision that wrote it: median {past:.0f} ms, at most {most_past:.0f} ms")
print(f"  watched from now on:                     median {now:.0f} ms, at most {most_now:.0f} ms")
sys.exit(0 if past > 40 and past > 4 * now else 1)
PY
python3 probe.py
