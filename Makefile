# The commands of the project. `make` alone lists them.

TARGET := $(or $(CARGO_TARGET_DIR),target)
# Of Cargo.toml: `release`, since figures are taken from most commands.
PROFILE = release
# The program that is run: one that is named, as `make demo OVERSELL=target/debug/oversell`, is there already.
OVERSELL ?= $(TARGET)/$(PROFILE)/oversell
LAB_JSON := target/lab/lab.json
MAVEN := mvn -f jmeter -q verify
# What npm writes last.
NODE_MODULES := node_modules/.package-lock.json
# The versions that lock/tests/interop and src/claims/script.rs name; the first are the course's own.
REDISSON := 3.11.2 3.13.6 4.7.0
CURATOR := 4.3.0 5.9.0
SPRING := 7.0.10
PRINTED := 2.2.11.RELEASE
PEERS := $(REDISSON:%=interop/redisson/target/%/peer.jar) $(CURATOR:%=interop/curator/target/%/peer.jar) \
         $(SPRING:%=interop/spring/target/%/peer.jar) $(PRINTED:%=interop/printed/target/%/peer.jar)
# Of the library, each alone.
FEATURES := redis zookeeper mysql etcd tls tower axum
KAZOO := interop/kazoo/venv/installed
GO_PEER := interop/etcd/target/peer
REDIS_PY := interop/redis-py/venv/installed
ENGINES := interop/engines/venv

.PHONY: help demo lab test servers engines soak package check course faults figures docs bench lockbench jmeter interop install build

help: ## this list
	@sed -n 's/^\([a-z]*\):.* ## /  make \1\t/p' $(MAKEFILE_LIST)

# A ZooKeeper that is up for seconds loses more by the second of Java's compilers than it gains.
demo test: export JAVA_TOOL_OPTIONS = -XX:TieredStopAtLevel=1

demo: PROFILE = demo
demo: build ## the course's main claims on real servers, with a verdict each, and target/course.html
	$(OVERSELL) course --lab --quick --html target/course.html --json target/course.json

lab: build ## servers, three instances and nginx, until Ctrl-C; LAB='--links --replica' for the races that cut links or promote a replica
	$(OVERSELL) lab $(LAB)

test: install browser $(NODE_MODULES) ## every test, against real servers on free ports, and the page in a real browser
	cargo test --workspace --locked --no-run
	@$(MAKE) --no-print-directory --jobs --keep-going --output-sync=target $(BESIDE)
	cargo test --workspace --locked --test contract
	@$(MAKE) --no-print-directory --jobs --keep-going --output-sync=target $(BESIDE_PAGE) page

# Beside each other: most of their tests wait for a server. Each prints all that it has to say when it ends. The contract runs by
# itself: five engines' leases do not keep their time beside another load.
BESIDE = unit main small
.PHONY: $(BESIDE)
unit:
	cargo test --workspace --locked --lib --bins

main:
	cargo test --workspace --locked --test $@

small:
	cargo test --workspace --locked --test history --test cost
	cargo test --workspace --locked --doc

# Random programs, and clusters that break: their load would end leases of other tests, so they are ignored tests of the contract. They
# wait more than they work, as do the replicas' tests: the page's have what is left of the processor.
PROGRAMS = cargo test --workspace --locked --test contract -- --ignored
IGNORED = random_programs in_a_broken_cluster
BESIDE_PAGE = $(IGNORED) replicas
.PHONY: $(BESIDE_PAGE) page
$(IGNORED):
	$(PROGRAMS) $@

replicas:
	servers=$$(scripts/servers $(NEWER_REDIS)) && env $$servers cargo test --workspace --locked --test contract -- replica

# Four groups at once, in the order of their names. With six, a sale of 5,000 takes most of the minute that its test waits.
page:
	nice -n 10 node --test --test-reporter=spec --test-concurrency=4 tests/page/*.group.mjs

# WAIT differs from Redis 7.2 on, and the system's may be older.
NEWER_REDIS = valkey-8

# Sets of other releases' servers; a set is one lab.
SETS = debian13 mysql redis86 valkey9 redict
debian13 = redis-8 mariadb-11 zookeeper-3.9 etcd-3.5
mysql = valkey-8 mysql-9
redis86 = redis-8.6
valkey9 = valkey-9
redict = redict-7

servers: install ## what depends on a server's release, on others than the system's: SET=debian13, mysql, redis86, valkey9 or redict, else all
	@failed=; $(foreach set,$(or $(SET),$(SETS)),scripts/on-servers $($(set)) || failed=1;) test -z "$$failed"

engines: install $(ENGINES)/installed ## the course's ten statements on other engines, MariaDB's and MySQL's, PostgreSQL, SQLite, H2, HSQLDB and more, into target/docs/engines.md; ENGINES_ARE='h2,sqlite' tries some
	@scripts/install engines
	@mkdir -p $(TARGET)/docs
	cargo build --locked
	$(ENGINES)/bin/python interop/engines/matrix.py --engines '$(ENGINES_ARE)' >$(TARGET)/docs/engines.md

soak: install browser $(NODE_MODULES) $(PEERS) $(KAZOO) $(GO_PEER) package ## what takes too long for every change: `make package`, the tests on a machine that stops now and then, all clauses of the contract over all locks, races ten times, all lines by hand and timelines, ensembles, interop, every claim and its twin, the fault matrix, `make servers`, `make engines`
	@scripts/install soak
	cargo test --workspace --locked --no-run
	cargo test --workspace --locked --lib --bins --test contract --test main --config "target.'cfg(unix)'.runner='$(CURDIR)/scripts/with-stops'"
	OVERSELL_SOAK=1 cargo test --workspace --test contract --locked
	OVERSELL_SOAK=1 $(PROGRAMS)
	OVERSELL_SOAK=1 cargo test --workspace --test main --locked
	OVERSELL_SOAK=1 node --test --test-reporter=spec --test-concurrency=2 tests/page/*.group.mjs
	cargo test --workspace --test interop --locked
	$(TARGET)/debug/oversell course --lab --json target/course.json
	$(TARGET)/debug/oversell course --lab --twins --json target/twins.json
	$(TARGET)/debug/oversell faults --json target/faults.json
	@$(MAKE) --no-print-directory servers
	@$(MAKE) --no-print-directory engines

package: install ## the lock library as others get it: each feature alone, its .crate file with the oldest dependencies that it allows, and a program that uses it; and the documentation of all code
	for feature in $(FEATURES); do cargo check --package oversell-lock --locked --features $$feature || exit 1; done
	RUSTDOCFLAGS='-D warnings' cargo doc --package oversell-lock --no-deps --locked
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked
	scripts/packaged

# CI names another, which builds what the tests run.
LINT = cargo clippy --workspace --all-targets --locked -- -D warnings

check: looks lint ## formatting, clippy, scripts, JavaScript, and what the project stands on (cargo-deny)

looks: rust linters $(NODE_MODULES)
	shellcheck scripts/clients scripts/install scripts/install-packages scripts/packaged scripts/servers scripts/on-servers scripts/with-stops config/galera config/replicated .ci/run .ci/clippy findings/*.sh
	node_modules/.bin/oxlint static/js tests/page
	node_modules/.bin/tsc
	node_modules/.bin/tsc -p tests/page
	@for compose in docker-compose 'docker compose'; do \
	    ! $$compose version >/dev/null 2>&1 || $$compose --profile ha config -q || exit 1; done
	rustfmt --edition 2024 --check $$(git ls-files '*.rs')
	@if cargo deny --version >/dev/null 2>&1; then \
	    cargo fetch --locked --quiet && cargo deny --locked --offline check bans licenses sources || exit 1; \
	    if cargo deny fetch db >/dev/null 2>&1; then cargo deny --locked --offline check advisories; \
	    else echo 'the database of advisories (github.com/RustSec/advisory-db) cannot be reached: advisories not checked'; fi; \
	else echo 'cargo-deny is not installed (cargo install --locked cargo-deny): licences, sources and advisories of dependencies not checked'; fi

lint: rust linters
	$(LINT)

# A linter that is one program and knows undefined names, unused code, and imports of what is not exported; beside it
# the compiler that checks the types in comments, puppeteer-core, by which the tests drive a browser, axe-core, by which they
# look whether everybody can use the page, and two programs that generate clients of the API.
$(NODE_MODULES): package-lock.json
	npm ci --silent --no-audit --no-fund
	touch $@

.PHONY: looks lint linters browser
linters:
	@scripts/install check

browser:
	@scripts/install test

docs: install ## what is made from data: docs/course*, docs/strategies* and the README's totals; in target/docs the statements that are sent, openapi.json, the matrix of `make faults`
	cargo test --workspace --quiet --locked --lib --bins -- --ignored make_docs
	OVERSELL_WRITE_DOCS=1 cargo test --quiet --locked --test main -- statements

course: committed $(PEERS) build ## before a release: every claim in full, about 35 minutes on a quiet machine, kept as the last full run; then `make docs`
	$(OVERSELL) course --lab --store src/claims/last_run.json

# The run names its commit.
.PHONY: committed
committed:
	@git diff --quiet HEAD || { echo 'commit first: the run names the commit that it is of' >&2; exit 2; }

faults: build ## strategies while servers break, about 10 minutes; then `make docs` writes the matrix
	$(OVERSELL) faults --json target/faults.json

figures: build ## what each strategy sells, and `make bench`, into target/docs/figures.md; on a quiet machine
	@mkdir -p target/docs
	$(OVERSELL) compare --lab --all --markdown >target/docs/figures.md
	$(OVERSELL) bench --lab --markdown >>target/docs/figures.md

bench: build ## strategies as ratios to ceilings of the same run; wanted and seen
	$(OVERSELL) bench --lab

# Without Python's venv it goes on, and says what it leaves out.
lockbench: install ## the lock library beside rslock, redlock-rs and redis-py: rates as ratios to the bare scripts, round trips, allocations
	-@$(MAKE) --no-print-directory $(REDIS_PY)
	cargo bench --package oversell-lock --locked --bench locks

# A plan that buys, by one stock, is judged by the books of the instances and stores; compare.jmx sets the stock for each strategy.
JUDGED := $(if $(PLAN),$(filter-out jmeter/compare.jmx,$(shell grep -sl check/lock 'jmeter/$(basename $(PLAN)).jmx')))
jmeter: $(if $(JUDGED),build) ## JMeter's plans against a running lab; PLAN=check-lock runs one; STRATEGY= THREADS= LOOPS=, STEP= of the seckill
	@test -z '$(PLAN)' || test -e 'jmeter/$(basename $(PLAN)).jmx' || { \
	    echo 'there is no plan $(PLAN); there are: $(basename $(notdir $(wildcard jmeter/*.jmx)))' >&2; exit 2; }
	@scripts/install jmeter
	@test -e $(LAB_JSON) || { echo 'no lab is running: start one in another terminal with `make lab`' >&2; exit 2; }
	@test -r $(LAB_JSON) || { echo 'permission denied to read $(LAB_JSON): another user started that lab; run this as that user' >&2; exit 2; }
	@java jmeter/Summary.java plans jmeter '$(or $(PLAN),*)' - "$$(sed -n 's|^ *"http": *"http://\(.*\)".*|\1|p' $(LAB_JSON))" \
	    '$(or $(STRATEGY),none)' '$(or $(STEP),redis-rlock)' > /dev/null
	@echo 'Maven starts; the first time it downloads JMeter, which takes a minute or two'
	@$(if $(JUDGED),$(OVERSELL) judge --) $(MAVEN) -Dorg.slf4j.simpleLogger.log.org.codehaus.mojo.exec.ExecMojo=off $$(sed -n 's|^ *"http": *"http://\(.*\):\([0-9]*\)".*|-Dhost=\1 -Dport=\2|p' $(LAB_JSON))

interop: install $(PEERS) $(KAZOO) $(GO_PEER) ## Java with Redisson and Curator, Python with kazoo, Go with etcd's client, and ours, against each other; TEST=fair runs those
	cargo test --workspace --test interop --locked $(if $(TEST),-- $(TEST))

# Downloads what they need once; after that neither Maven, pip nor Go asks for anything.
JAVA = interop/$(1)/pom.xml $(wildcard interop/$(1)/src/main/java/oversell/*.java interop/java/oversell/*.java)

interop/redisson/target/%/peer.jar: $(call JAVA,redisson)
	@scripts/install interop
	mvn -f interop/redisson -q package -Dredisson=$*

interop/curator/target/%/peer.jar: $(call JAVA,curator)
	@scripts/install interop
	mvn -f interop/curator -q package -Dcurator=$*

interop/spring/target/%/peer.jar: $(call JAVA,spring)
	@scripts/install interop
	mvn -f interop/spring -q package -Dspring=$*

interop/printed/target/%/peer.jar: $(call JAVA,printed) interop/printed/src/main/resources/unlock.lua
	@scripts/install interop
	mvn -f interop/printed -q package -Dprinted=$*

$(GO_PEER): interop/etcd/peer.go interop/etcd/go.mod interop/etcd/go.sum
	@scripts/install go
	go build -C interop/etcd -o target/peer .

interop/%/venv/installed: interop/%/requirements.txt
	@scripts/install python
	python3 -m venv $(@D)
	$(@D)/bin/pip install -q --disable-pip-version-check -r $<
	touch $@

# Packages are installed while the program is built.
ifeq ($(origin OVERSELL),file)
build: rust
	scripts/install while cargo build --profile $(PROFILE) --locked
else
build: install $(OVERSELL)
endif

install: rust
	@scripts/install

.PHONY: rust
rust:
	@command -v cargo >/dev/null || { echo 'Rust is not installed: see https://rustup.rs, or `docker compose up` needs none' >&2; exit 2; }
