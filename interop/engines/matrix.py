#!/usr/bin/env python3
"""matrix.py [--engines WORDS] [--statements WORDS] [--buyers 10] [--each 20] [--expect FILE] > engines.md

The course's ten statements on other engines: engines.toml says what must come out of each cell. For each engine it starts a server of
scripts/servers, or of a package; for each cell all buyers take pieces at once, each by its own connection. Prints a table in Markdown:
`200` sold and gone, `**200/71**` sold and gone: oversold, `95 · 1020×105` sold and gone, and refused by which error. Exit status: 0 all came
out as expected, 1 a cell did not, 2 an engine could not be tried. All servers listen on 127.0.0.1 and end with it.
"""

import argparse
import collections
import contextlib
import getpass
import importlib.util
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

import jpype
import jpype.dbapi2
import psycopg
import pymysql

HERE = pathlib.Path(__file__).resolve().parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parents[1] / "target")).resolve() / "engines"
LEVELS = {"RR": "REPEATABLE READ", "RC": "READ COMMITTED", "SER": "SERIALIZABLE"}
STOCK = 1_000_000
# Buyers have numbers from 0 on; an even one, so that it is on the first node.
ADMIN = -2
START_LIMIT_S = 120
CELL_LIMIT_S = 20
# Longer than a cell and InnoDB's wait for a row.
HANG_LIMIT_S = 100
# How often a purchase is tried again, after a version that has changed or a row of the lock that is there.
MAX_CONFLICTS = {"compare": 200, "insert": 2000}
# What says that the row of the lock is there already.
DUPLICATE = {"1062", "23505", "SQLITE_CONSTRAINT_UNIQUE"}


class Connection:
    """One connection of one of four drivers: each has DB-API cursors, and its own way to begin and to number its errors."""

    def __init__(self, made, level):
        self.made, self.is_jdbc = made, isinstance(made, jpype.dbapi2.Connection)
        self.cursor = made.cursor()
        if level != "default":
            scope = "SESSION" if isinstance(made, pymysql.Connection) else "SESSION CHARACTERISTICS AS"
            self.run(f"SET {scope} TRANSACTION ISOLATION LEVEL {LEVELS[level]}")

    def run(self, sql):
        """The first row of a SELECT; else the number of changed rows."""
        changed = self.cursor.execute(sql)
        if self.cursor.description:
            return self.cursor.fetchone()
        return changed if isinstance(changed, int) else self.cursor.rowcount

    def begin(self):
        if self.is_jdbc:
            self.made.autocommit = False
        else:
            self.run("BEGIN")

    def end(self, how):
        if not self.is_jdbc:
            return self.run(how)
        with contextlib.suppress(*([jpype.dbapi2.Error] if how == "ROLLBACK" else [])):
            getattr(self.made, how.lower())()
        self.made.autocommit = True


def number(error):
    """The error's number or state, by which its engine's manual lists it."""
    cause = next((one for one in (error, error.__cause__, *error.args) if hasattr(one, "getSQLState")), None)
    if cause is not None:
        return str(cause.getSQLState())
    if error.args and isinstance(error.args[0], int):
        return str(error.args[0])
    return str(getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None) or error)


def attempt(connection, steps, sql):
    """Carries out the steps once; returns the step at which another was faster, or None if a piece is sold."""
    read, lost, release = None, None, None
    for step in steps:
        if step == "begin":
            connection.begin()
        elif step == "commit":
            connection.end("COMMIT")
        elif step in ("insert", "get"):
            try:
                taken = connection.run(sql[step].format(id=random.getrandbits(62)))
            except Exception as error:
                if number(error) not in DUPLICATE:
                    raise
                return step
            if step == "get" and taken[0] != 1:
                return step
            release = steps[-1]
        elif step != release:
            try:
                answer = connection.run(sql[step].format(**(read or {})))
            except Exception:
                if release:
                    connection.run(sql[release])
                raise
            if step in ("read", "lock"):
                read = dict(zip(("count", "version"), answer))
            elif step in ("take", "compare") and answer != 1:
                lost = step
        else:
            connection.run(sql[release])
    return lost


def purchase(connection, steps, sql, end):
    """Takes one piece, again after each conflict; whether it was sold."""
    conflicts = 0
    while lost := attempt(connection, steps, sql):
        conflicts += 1
        if conflicts >= MAX_CONFLICTS.get(lost, 0) or time.monotonic() > end:
            return False
        if lost == "insert":
            time.sleep(0.002)
    return True


def run_cell(connect, level, steps, sql, table, buyers, each):
    """Sold, gone, what gave up, and the errors of what was refused."""
    admin = Connection(connect(ADMIN), "default")
    for name, columns in (
        ("db_stock", "id BIGINT NOT NULL PRIMARY KEY, product_code VARCHAR(64), count INT, version BIGINT NOT NULL"),
        ("tb_lock", "id BIGINT NOT NULL PRIMARY KEY, lock_name VARCHAR(50) NOT NULL UNIQUE"),
    ):
        admin.run(f"DROP TABLE IF EXISTS {name}")
        admin.run(f"CREATE TABLE {name} ({columns}) {table}")
    admin.run(f"INSERT INTO db_stock VALUES (1, '1001', {STOCK}, 0)")
    gate = threading.Barrier(buyers)

    def buy(n, own):
        connection = Connection(connect(n), level)  # Here, since one of JDBC belongs to its thread.
        gate.wait(HANG_LIMIT_S)
        end = time.monotonic() + CELL_LIMIT_S
        for _ in range(each):
            if time.monotonic() > end:
                break
            try:
                own["sold" if purchase(connection, steps, sql, end) else "gave up"] += 1
            except Exception as error:
                own[number(error)] += 1
                with contextlib.suppress(sqlite3.OperationalError):  # It has rolled back already.
                    connection.end("ROLLBACK")
        connection.made.close()

    all_own = [collections.Counter() for _ in range(buyers)]
    threads = [threading.Thread(target=buy, args=buyer, daemon=True) for buyer in enumerate(all_own)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_LIMIT_S)
        if thread.is_alive():
            raise RuntimeError("a statement is not answered")
    if gate.broken:
        raise RuntimeError("a buyer could not connect")
    gone = STOCK - admin.run(sql["read"])[0]
    admin.made.close()
    outcomes = sum(all_own, collections.Counter())
    return outcomes.pop("sold", 0), gone, outcomes.pop("gave up", 0), outcomes


def judge(cell, sold, gone, refused, errors):
    """Why a cell is not what was expected; None if it is."""
    if "?" in cell:
        return None
    came = "o" if sold > gone else "l" if sold < gone else "r" if refused else "s"
    strange = set(refused) - {str(error) for error in errors}
    if strange:
        return f"refused by {sorted(strange)}, expected {errors}"
    if not sold:
        return "nothing was sold"
    words = {"o": "oversold", "l": "gone and not sold", "r": "some refused", "s": "safe"}
    return None if came in cell else f"{words[came]}, expected: {' or '.join(words[one] for one in cell)}"


# How each engine starts: a context whose value makes the connection of buyer n.


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def server(name):
    """The program of `scripts/servers NAME`."""
    made = subprocess.run([HERE.parents[1] / "scripts/servers", name], check=True, stdout=subprocess.PIPE, text=True)
    return pathlib.Path(made.stdout.strip().split("=", 1)[1])


@contextlib.contextmanager
def running(command, connect, folder, **options):
    """Runs a server until the end of the context, from when `connect` succeeds."""
    with open(folder / "log", "ab") as log, subprocess.Popen(command, stdout=log, stderr=log, **options) as process:
        try:
            end = time.monotonic() + START_LIMIT_S
            while True:
                try:
                    connect(ADMIN).close()
                    break
                except Exception as error:
                    if process.poll() is not None or time.monotonic() > end:
                        last = (folder / "log").read_text(errors="replace")[-500:]
                        raise RuntimeError(f"{command[0]} does not start: {error}; {last}") from error
                    time.sleep(0.2)
            yield connect
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def mysql_at(*ports, **options):
    def connect(n, database="d"):
        port = ports[n % len(ports)]
        options_ = {"host": "127.0.0.1", "port": port, "user": "root", "ssl_disabled": True, **options}
        made = pymysql.connect(autocommit=True, **options_)
        try:
            made.select_db(database)
        except pymysql.OperationalError:
            made.cursor().execute(f"CREATE DATABASE {database}")
            made.select_db(database)
        if n >= 0 and len(ports) > 1:  # Waits until this node has the tables that another one has made.
            for statement in ("SET SESSION wsrep_sync_wait = 1", "SELECT 1 FROM db_stock", "SET SESSION wsrep_sync_wait = 0"):
                made.cursor().execute(statement)
        return made

    return connect


@contextlib.contextmanager
def mysql(folder, name, *more):
    program, port, data = server(name), free_port(), folder / "data"
    user = f"--user={getpass.getuser()}"
    installer = [program.parent / "mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]
    if name.startswith("mysql"):
        installer = [program, "--no-defaults", "--initialize-insecure"]
    subprocess.run([*installer, user, f"--datadir={data}"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    command = [program, "--no-defaults", user, f"--datadir={data}", f"--port={port}", f"--socket={data}/socket", "--bind-address=127.0.0.1"]
    command += ["--skip-log-bin", "--innodb-buffer-pool-size=128M", "--max-connections=200", *more]
    if name.startswith("mysql"):
        command += ["--mysqlx=OFF", "--secure-file-priv="]
    with running(command, mysql_at(port), folder) as connect:
        yield connect


@contextlib.contextmanager
def galera(folder):
    """The cluster of a lab; the odd buyers write to its second node."""
    program = os.environ.get("OVERSELL", TARGET.parent / "debug/oversell")
    if not pathlib.Path(program).exists():
        raise RuntimeError(f"there is no {program}: cargo build")
    command = [program, "lab", "--galera", "2", "--dir", folder / "lab"]
    for option in ("--http-port", "--instances", "--mysql-port", "--redis-ports", "--zookeeper-port"):
        command += [option, "0"]

    def connect(n):
        lab = json.loads((folder / "lab/lab.json").read_text())
        return mysql_at(*(int(re.search(r":([0-9]+)/", node["url"])[1]) for node in [lab["mysql"], *lab["galera"]]))(n)

    with running(command, connect, folder) as connect:
        yield connect


@contextlib.contextmanager
def postgres(folder):
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        raise RuntimeError("PostgreSQL is not installed: Debian's package postgresql")
    as_nobody = []
    if os.getuid() == 0:  # It refuses root.
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        os.chown(folder, 65534, 65534)
    data, port = folder / "data", free_port()
    subprocess.run([*as_nobody, programs[-1] / "initdb", "-D", data, "-U", "postgres", "-A", "trust"], check=True, stdout=subprocess.DEVNULL)
    command = [*as_nobody, programs[-1] / "postgres", "-D", data, "-p", str(port), "-k", folder, "-c", "listen_addresses=127.0.0.1"]
    address = f"host=127.0.0.1 port={port} user=postgres"
    with running(command, lambda _: psycopg.connect(address, autocommit=True), folder) as connect:
        yield connect


@contextlib.contextmanager
def sqlite(folder):
    yield lambda _: sqlite3.connect(folder / "d", isolation_level=None)


@contextlib.contextmanager
def jdbc(folder, artifact, url):
    def connect(_):
        made = jpype.dbapi2.connect(url)
        made.autocommit = True
        return made

    yield connect


@contextlib.contextmanager
def seekdb(folder):
    spec = importlib.util.find_spec("pylibseekdb")
    if spec is None:
        raise RuntimeError("pylibseekdb is not in the environment: pip install pylibseekdb==1.4.0.post1")
    port, program = free_port(), pathlib.Path(spec.origin).parent / "seekdb"
    command = [program, "--nodaemon", "--port", str(port), "--base-dir", folder / "seekdb"]
    for parameter in ("memory_limit=2G", "datafile_size=1G", "log_disk_size=2G"):
        command += ["--parameter", parameter]
    (folder / "seekdb").mkdir()
    with running(command, mysql_at(port), folder, cwd=folder) as connect:
        yield connect


@contextlib.contextmanager
def go(folder, module):
    built, port = TARGET / "go_mysql_server", free_port()
    if not built.exists():
        if not shutil.which("go"):
            raise RuntimeError("Go is not installed")
        shutil.copy(HERE / "go_mysql_server.go", folder)
        for command in (["mod", "init", "peer"], ["get", module], ["mod", "tidy"], ["build", "-p", "1", "-o", built, "."]):
            subprocess.run(["go", *command], cwd=folder, check=True, stdout=sys.stderr, stderr=sys.stderr)
    with running([built, f"127.0.0.1:{port}"], mysql_at(port), folder) as connect:
        yield connect


STARTS = {"mysql": mysql, "galera": galera, "postgres": postgres, "sqlite": sqlite, "jdbc": jdbc, "seekdb": seekdb, "go": go}


def start_java(engines):
    """Fetches the jars of all engines in Java, and starts the one Java machine that a process can have."""
    jars, artifacts = TARGET / "jars", {engine["start"].split()[1] for engine in engines if engine["start"].startswith("jdbc ")}
    for artifact in artifacts:
        _, name, version = artifact.split(":")
        if not (jars / f"{name}-{version}.jar").exists():
            copy = ["mvn", "-q", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={jars}"]
            subprocess.run(copy, check=True, stdout=sys.stderr)
    if artifacts:
        jpype.startJVM(classpath=[str(jar) for jar in jars.glob("*.jar")])
        # HSQLDB prints what it waits for.
        jpype.java.lang.System.setOut(jpype.java.lang.System.err)


def show(sold, gone, gave_up, refused):
    cell = str(sold) if sold == gone else f"**{sold}/{gone}**"
    cell += "".join(f" · {error}×{count}" for error, count in sorted(refused.items()))
    return cell + (f" · g {gave_up}" if gave_up else "")


def try_engine(engine, statements, sql, asked, say):
    """Prints a row for each level of an engine; returns what came out otherwise than expected."""
    wrong, (start, *arguments) = [], engine["start"].split()
    sql = sql | engine.get("sql", {})
    with contextlib.ExitStack() as until_end:
        folder = until_end.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        os.chmod(folder, 0o755)  # Servers that refuse root run as another user.
        connect = until_end.enter_context(STARTS[start](pathlib.Path(folder), *arguments))
        with contextlib.closing(connect(ADMIN)) as made:
            version = Connection(made, "default").run(engine.get("version", "SELECT VERSION()"))[0]
        title = f"{engine['name']} {re.search(r'[0-9]+([.][0-9]+)+', version).group()}"
        for level in ("RR", "RC", "SER", "default"):
            if level not in engine:
                continue
            row = []
            for (name, steps), cell in zip(statements.items(), engine[level].split(), strict=True):
                if cell == "-" or name not in asked.statements:
                    row.append("–")
                    continue
                sold, gone, gave_up, refused = run_cell(connect, level, steps.split(), sql, engine.get("table", ""), asked.buyers, asked.each)
                row.append(show(sold, gone, gave_up, refused))
                why = judge(cell, sold, gone, refused, engine.get("errors", []))
                say(f"{title} {level} {name}: {row[-1]}{'' if why is None else '  ✗ ' + why}")
                wrong += [] if why is None else [f"{title}, {level}, {name}: {why}"]
            print(f"| {title} | {level} | {' | '.join(row)} |", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--expect", type=pathlib.Path, default=HERE / "engines.toml")
    parser.add_argument("--engines", default="", help="only those whose name or start has one of these words, with commas between")
    parser.add_argument("--statements", default="", help="only these, with commas between")
    parser.add_argument("--buyers", type=int, default=10)
    parser.add_argument("--each", type=int, default=20)
    asked = parser.parse_args()
    data = tomllib.loads(asked.expect.read_text())
    statements, words = data["statements"], asked.engines.lower().split(",")
    engines = [one for one in data["engine"] if any(word in f"{one['name']} {one['start']}".lower() for word in words)]
    asked.statements = asked.statements.split(",") if asked.statements else list(statements)
    if not engines or not set(asked.statements) <= set(statements):
        parser.error(f"there is no such engine or statement; statements: {', '.join(statements)}")
    say = lambda words: print(words, file=sys.stderr, flush=True)  # noqa: E731
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    TARGET.mkdir(parents=True, exist_ok=True)
    start_java(engines)
    begun, wrong, missing = time.monotonic(), [], []
    print(f"| engine | level | {' | '.join(statements)} |\n|---|---|{'---|' * len(statements)}")
    for engine in engines:
        try:
            wrong += try_engine(engine, statements, data["sql"], asked, say)
        except Exception as error:
            missing.append((engine, f"{engine['name']} ({engine['start'].split()[0]}): {error}"))
            say(f"not tried: {missing[-1][1]}")
    minutes = (time.monotonic() - begun) / 60
    print(f"\n{asked.buyers} buyers, {asked.each} purchases each; {time.strftime('%Y-%m-%d')}, {minutes:.0f} minutes.")
    for _, why in missing:
        print(f"Not tried: {why}")
    for why in wrong:
        say(f"✗ {why}")
    say(f"{len(wrong)} cells came out otherwise than expected")
    return 1 if wrong else 2 if any(not engine.get("optional") for engine, _ in missing) else 0


if __name__ == "__main__":
    sys.exit(main())
