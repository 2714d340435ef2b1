#!/usr/bin/env bash
# MySQL 9.7.4 (Debian sid's mysql-server-core), REPEATABLE READ: an INSERT that a unique key refuses leaves, until its transaction ends, an exclusive lock on the end
# of the primary key: every INSERT of a larger id waits, whatever its unique key. MariaDB 10.11.19 locks the gap before the refused key only. Needs apt and MariaDB's
# client. Exits with 1 if that has changed.
set -euo pipefail
server=$(cd "$(dirname "$0")/.." && scripts/servers mysql-9 2>/dev/null | sed 's/^[^=]*=//')
folder=$(mktemp -d)
trap 'kill "$(cat "$folder/pid" 2>/dev/null)" 2>/dev/null && sleep 2; rm -rf "$folder"' EXIT
cd "$folder"
flags=(--no-defaults --datadir="$folder/data" --user="$(id -un)" --secure-file-priv=)
"$server" "${flags[@]}" --initialize-insecure >log 2>&1 || { tail log; exit 2; }
"$server" "${flags[@]}" --skip-networking --mysqlx=OFF --socket="$folder/s" --pid-file="$folder/pid" >log 2>&1 </dev/null &
sql() { mysql --no-defaults -S "$folder/s" -u root -N "$@"; }
for _ in $(seq 60); do sql -e 'DO 0' 2>/dev/null && break; sleep 0.5; done

sql -e 'CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, user INT UNIQUE); INSERT INTO shop.orders VALUES (1, 1010)'
mkfifo lines
sql -nf shop <lines >refused 2>&1 &
open=$!
exec 3>lines
echo 'START TRANSACTION; INSERT INTO orders VALUES (2, 1010); SELECT index_name, lock_mode, lock_data FROM performance_schema.data_locks WHERE lock_data LIKE "supremum%"; SELECT "said";' >&3
for _ in $(seq 100); do grep -q said refused && break; sleep 0.1; done
waiting=0
for user in 1 1009 1011 5000; do
    sql shop -e "SET innodb_lock_wait_timeout = 1; INSERT INTO orders VALUES (10 + $user, $user)" >said 2>&1 || true
    ! grep -q 'ERROR 1205' said || waiting=$((waiting + 1))
done
echo 'ROLLBACK;' >&3
exec 3>&-
wait "$open"
echo "MySQL $(sql -e 'SELECT VERSION()'): beside a refused INSERT whose transaction is open, of the orders of users 1, 1009, 1011 and 5000 $waiting waited in vain; the lock: $(grep supremum refused || true)"
[ "$waiting" = 4 ]
