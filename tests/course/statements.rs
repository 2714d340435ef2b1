//! What the servers receive for one piece, from the printed class and from our strategy.
//!
//! 1. Both sell on the same servers. The first sale, which connects and loads scripts, is not recorded.
//! 2. MySQL's general log, Redis' MONITOR and a proxy to ZooKeeper record the second one. What differs from run to run is
//!    masked: the name of the run, owners, digests of scripts, long numbers, times.
//! 3. Each statement that one of them alone sends has a word that our text declares behind [`LABELS`], and each word that is
//!    declared makes such a difference.
//!
//! `printed.json` has what the printed classes have sent; `make soak` asks them again. `make docs` writes both sides side by side:
//! `target/docs/statements.md`.

use crate::{seckill::on_sale, support::*};
use oversell::{
    claims::Library,
    ctx::Ctx,
    registry::Rank,
    seckill::{self, Order},
    section::Job,
    stock,
};
use oversell_lab::{
    clients::{
        peer::Peer,
        proxy::Proxy,
        redis_at::redis_at,
        zookeeper_wire::{Messages, Operation, Request},
    },
    lab::Lab,
};
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use serde_json::json;
use sqlx::{Connection, Executor, MySqlConnection};
use std::{
    collections::{BTreeMap, HashMap},
    env, fs,
    path::Path,
    sync::Arc,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// Our strategies and steps, and what tells the printed class to do the same (`interop/printed`). §2.7 is the last of the
/// locks in Redis, since its timer asks once more 10 s later.
const PRINTED: [(&str, &str); 33] = [
    ("none", "buy 1.3"),
    ("mutex", "buy 1.5.1"),
    ("select-for-update", "buy 1.7.2"),
    ("version-cas", "buy 1.7.3"),
    ("redis-watch", "buy 1.8"),
    ("redis-setnx", "buy 2.1"),
    ("redis-setnx-ttl", "buy 2.2"),
    ("redis-setnx-owner", "buy 2.3"),
    ("redis-setnx-lua", "buy 2.5"),
    ("redis-reentrant", "buy 2.6"),
    ("redis-lock", "buy 2.10.1"),
    ("zk-ephemeral", "buy 3.3"),
    ("zk-sequential", "buy 3.4.1"),
    ("zk-sequential-as-printed", "buy 3.4.1"),
    ("zk-lock", "buy 3.4.2"),
    ("zk-lock-as-printed", "buy 3.4.2"),
    ("zk-reentrant", "buy 3.5"),
    ("zk-reentrant-as-printed", "buy 3.5"),
    ("zk-mutex", "buy 3.7.1"),
    ("zk-semaphore-mutex", "buy 3.7.2"),
    ("table-lock", "buy 4.2"),
    ("table-lock-as-printed", "buy 4.2"),
    ("check-then-deduct", "order first"),
    ("conditional-update", "order conditional"),
    ("global-mutex", "order synchronized"),
    ("user-mutex-new", "order new-string"),
    ("user-mutex", "order outside"),
    ("user-mutex-in-tx", "order inside"),
    ("redis-lock-fixed-id", "order redis-lock"),
    ("redis-lock-owner", "order redis-lock-owner"),
    ("redis-lock-lua", "order redis-lock-lua"),
    ("redis-rlock", "order rlock"),
    ("redis-watchdog", "buy 2.7"),
];

/// What stands before the declared differences, in English and in Chinese.
const LABELS: [&str; 2] = ["**Differs from the text in**: ", "**与原文不同**："];

const PAGES: [&str; 2] = ["target/docs/statements.md", "target/docs/statements.zh-CN.md"];
/// What the printed classes have sent. `OVERSELL_SOAK=1 OVERSELL_WRITE_PRINTED=1 cargo test --test main -- statements`
/// writes it.
const PRINTED_FILE: &str = "tests/course/printed.json";

/// The database of the printed classes, their node in ZooKeeper, and the beginning of their keys in Redis.
const RUN: &str = "statements";
const PIECES: i64 = 5000;
const WAIT: Duration = Duration::from_secs(60);
/// HikariCP's default: it opens them all, one after the other.
const JAVA_POOL_SIZE: i64 = 10;

/// What each of the servers has received, in its own order.
type Received = [Vec<String>; 3];
const SERVERS: [&str; 3] = ["MySQL", "Redis", "ZooKeeper"];
type Sides = BTreeMap<String, Received>;
type Lines = Arc<Mutex<Vec<String>>>;

/// Each difference between what ours send and what the printed classes have sent is declared. `make docs` has it write the page.
#[apply(test!)]
async fn each_difference_from_the_print_is_declared() -> Result<()> {
    let (printed, ours) = (stored()?, Stand::start().await?.ours().await?);
    if env::var_os("OVERSELL_WRITE_DOCS").is_some() {
        fs::create_dir_all("target/docs")?;
        for (n, file) in PAGES.iter().enumerate() {
            fs::write(file, page(n, &printed, &ours)?)?;
        }
    }
    judge(&printed, &ours)
}

#[apply(soak_test!)]
async fn the_printed_classes_send_what_is_stored() -> Result<()> {
    let printed = Stand::start().await?.printed().await?;
    if env::var_os("OVERSELL_WRITE_PRINTED").is_some() {
        let line = |(slug, received): (&String, &Received)| format!("\"{slug}\":{}", json!(received));
        let lines: Vec<_> = printed.iter().map(line).collect();
        fs::write(PRINTED_FILE, format!("{{\n{}\n}}\n", lines.join(",\n")))?;
    }
    let stored = stored()?;
    let differs = |slug: &&String| printed.get(*slug) != stored.get(*slug);
    let differing: Vec<_> = printed.keys().filter(differs).collect();
    ensure!(differing.is_empty(), "{PRINTED_FILE} has other statements of {differing:?}");
    Ok(())
}

fn stored() -> Result<Sides> {
    Ok(serde_json::from_str(&fs::read_to_string(PRINTED_FILE)?)?)
}

fn judge(printed: &Sides, ours: &Sides) -> Result<()> {
    let mut faults = Vec::new();
    for (slug, _) in PRINTED {
        let (text, sides) = (Declaration::of(slug)?, [&printed[slug], &ours[slug]]);
        faults.extend(faults_of(slug, sides, text.as_ref()));
        // The twins: a text without its declaration, and with one that says nothing of its statements.
        let is_caught = |text| !faults_of(slug, sides, text).is_empty();
        ensure!(text.is_none() || is_caught(None), "{slug} may declare nothing");
        let idle = Declaration { words: vec!["no such word".to_owned()], ..text.unwrap_or_default() };
        ensure!(is_caught(Some(&idle)), "{slug} may declare anything");
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

/// The differences that the text does not declare, and what it declares without a difference.
fn faults_of(slug: &str, sides: [&Received; 2], text: Option<&Declaration>) -> Vec<String> {
    let [theirs, ours] = sides.map(|received| {
        let lines = received.iter().flatten();
        lines.map(|line| comparable(line)).collect::<Vec<_>>()
    });
    let differing = [only_in(&theirs, &ours), only_in(&ours, &theirs)];
    let of = |word: &str| differing.each_ref().map(|lines| lines.iter().filter(|line| has(line, word)).count());
    let none = Declaration::default();
    let declared = text.unwrap_or(&none);
    let undeclared = differing.iter().flatten().filter(|line| {
        let mut words = declared.words.iter().chain(&declared.words_of_others);
        !words.any(|word| has(line, word))
    });
    let undeclared = undeclared.map(|line| format!("{slug}: its text does not declare that one alone sends {line}"));
    let idle = declared.words.iter().filter(|word| {
        let [theirs, ours] = of(word);
        theirs == ours
    });
    let idle = idle.map(|word| format!("{slug}: its text declares {word}, which makes no difference"));
    let mut faults: Vec<_> = undeclared.chain(idle).collect();
    if text.is_none() == (theirs != ours) && faults.is_empty() {
        faults.push(format!("{slug}: the order differs, or its text declares no difference that there is"));
    }
    faults
}

/// Case and spaces make no difference to a server.
fn comparable(statement: &str) -> String {
    let statement = statement.to_lowercase();
    let words: Vec<_> = statement.split_whitespace().collect();
    ["(", ")", ",", "="].into_iter().fold(words.join(" "), |text, mark| {
        let parts: Vec<_> = text.split(mark).map(str::trim).collect();
        parts.join(mark)
    })
}

/// Whether the line has this, and not as a part of a longer name.
fn has(line: &str, word: &str) -> bool {
    let word = comparable(word);
    let goes_on = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "_:/-".contains(c));
    let [first, last] = [word.chars().next(), word.chars().last()].map(goes_on);
    line.match_indices(&word).any(|(at, _)| {
        let (before, behind) = (&line[..at], &line[at + word.len()..]);
        !(first && goes_on(before.chars().last()) || last && goes_on(behind.chars().next()))
    })
}

/// The lines that these have more often than the others.
fn only_in(these: &[String], others: &[String]) -> Vec<String> {
    let mut others = others.to_vec();
    let is_alone = |line: &&String| match others.iter().position(|other| other == *line) {
        Some(same) => {
            others.swap_remove(same);
            false
        }
        None => true,
    };
    these.iter().filter(is_alone).cloned().collect()
}

/// What a text says of its differences.
#[derive(Default)]
struct Declaration {
    in_words: [String; 2],
    /// What stands between back-ticks.
    words: Vec<String>,
    /// The words of the texts that it names.
    words_of_others: Vec<String>,
}

impl Declaration {
    fn of(slug: &str) -> Result<Option<Self>> {
        let folder = match stock::find(slug) {
            Some(_) => "src/stock/strategies",
            None => "src/seckill/steps",
        };
        let text = fs::read_to_string(format!("{folder}/{}.md", slug.replace('-', "_")))?;
        let said = |label| {
            let said = text.split("\n\n").find_map(|paragraph| paragraph.strip_prefix(label));
            said.map(|said| said.split('\n').collect::<Vec<_>>().join(" "))
        };
        let [Some(en), Some(zh)] = LABELS.map(said) else {
            let half = LABELS.iter().find(|label| text.contains(**label));
            ensure!(half.is_none(), "{slug}: {half:?} stands in one language alone");
            return Ok(None);
        };
        let quoted = en.split('`').skip(1).step_by(2).map(str::to_owned);
        let (others, words): (Vec<_>, Vec<_>) = quoted.partition(|word| word.ends_with(".md"));
        let mut words_of_others = Vec::new();
        for other in others {
            let other = other.trim_end_matches(".md").replace('_', "-");
            let other = Self::of(&other)?.with_context(|| format!("{slug}: {other} declares nothing"))?;
            words_of_others.extend(other.words.into_iter().chain(other.words_of_others));
        }
        Ok(Some(Self { in_words: [en, zh], words, words_of_others }))
    }
}

const HEADS: [&str; 2] = [
    "# What is really sent, printed and ours

[中文](statements.zh-CN.md)

For one piece, without anybody else: what MySQL's general log, Redis' `MONITOR` and a proxy to ZooKeeper recorded of the
printed class (`interop/printed`) and of our strategy, each server in its own order. `=` is the same but for case and spaces. A
line that begins with `lua` is what the script before it ran. Masked is what differs from run to run: `<uuid>` with a number
behind it is an owner. Not recorded is the first purchase, which connects and loads scripts, and what comes when the purchase is
over, as the timer of §2.7. Made by `make docs`; `tests/course/statements.rs` fails where a difference is not declared.
",
    "# 真正发出的语句，原文与本项目

[English](statements.md)

买一件，没有别人：MySQL 的 general log、Redis 的 `MONITOR`、ZooKeeper 前面的代理，记下原文的类（`interop/printed`）和本项目的策略各发了什么；每个服务器按自己的顺序。`=` 表示除了大小写和空格都一样。`lua` 开头的行，是它前面的脚本执行的命令。每次运行都不同的已经替换掉：`<uuid>` 连同后面的数字是持有者。没有记录的：第一次购买（它要建立连接、装载脚本），以及购买结束以后的，比如 §2.7 的定时器。由 `make docs` 生成；有差别没有写明，`tests/course/statements.rs` 就失败。
",
];
const COLUMNS: [&str; 2] = ["| | printed | ours |", "| | 原文 | 本项目 |"];
const SAME: [&str; 2] = ["No difference.", "没有差别。"];

const ALONE: [&str; 2] = ["Without a printed class: ", "没有原文的类："];

fn page(language: usize, printed: &Sides, ours: &Sides) -> Result<String> {
    let mut page = HEADS[language].to_owned();
    let is_of_course = |rank: Rank| !rank.is_beyond();
    let strategies = stock::ALL.iter().filter(|entry| is_of_course(entry.spec.rank));
    let steps = seckill::ALL.iter().filter(|entry| is_of_course(entry.spec.rank));
    let slugs = strategies.map(|entry| entry.slug).chain(steps.map(|entry| entry.slug));
    let mut alone = Vec::new();
    for slug in slugs {
        let Some((_, command)) = PRINTED.iter().find(|(printed, _)| *printed == slug) else {
            alone.push(format!("`{slug}`"));
            continue;
        };
        page += &format!("\n## `{slug}` · `{command}`\n\n{}\n|---|---|---|\n", COLUMNS[language]);
        for (server, (theirs, ours)) in SERVERS.iter().zip(printed[slug].iter().zip(&ours[slug])) {
            for n in 0..theirs.len().max(ours.len()) {
                let [theirs, ours] = [theirs, ours].map(|lines| lines.get(n).map_or("", String::as_str));
                let same = comparable(theirs) == comparable(ours);
                let ours = if same { "=".to_owned() } else { cell(ours) };
                page += &format!("| {server} | {} | {ours} |\n", cell(theirs));
            }
        }
        let declared = Declaration::of(slug)?.map(|text| format!("{}{}", LABELS[language], text.in_words[language]));
        page += &format!("\n{}\n", declared.as_deref().unwrap_or(SAME[language]));
    }
    page += &format!("\n{}{}\n", ALONE[language], alone.join(", "));
    Ok(page)
}

fn cell(line: &str) -> String {
    match line {
        "" => String::new(),
        line => format!("`` {} ``", line.replace('|', "\\|")),
    }
}

/// Servers, what they have received, and our clients.
struct Stand {
    lab: Lab,
    ctx: Ctx,
    /// A proxy to it.
    zookeeper: Proxy,
    redis: MultiplexedConnection,
    commands: Lines,
    requests: Lines,
}

impl Stand {
    async fn start() -> Result<Self> {
        let lab = servers_alone().await?;
        let (commands, requests) = (Lines::default(), Lines::default());
        let mut at = lab.addresses().clone();
        let proxy = proxy(at.zookeeper.connect, Arc::clone(&requests))?;
        at.zookeeper.connect = proxy.address();
        let ctx = Ctx::new(config(&at))?;
        migrate(&ctx).await;
        let mut mysql = MySqlConnection::connect(&at.mysql.url).await?;
        mysql.execute("SET GLOBAL log_output = 'TABLE'").await?;
        mysql.execute("SET GLOBAL general_log = ON").await?;
        // Long numbers are masked.
        for table in ["tb_seckill_voucher", "tb_lock"] {
            let begin = format!("ALTER TABLE {table} AUTO_INCREMENT = 1000000000001");
            mysql.execute(&*begin).await?;
        }
        monitor(&at.redis[0].url, Arc::clone(&commands)).await?;
        Ok(Self { redis: redis_at(&at.redis[0].url).await?, zookeeper: proxy, lab, ctx, commands, requests })
    }

    async fn ours(&self) -> Result<Sides> {
        let mut sides = Sides::new();
        let voucher = on_sale(&self.ctx, PIECES).await?;
        for (slug, _) in PRINTED {
            let sell = async |user| match stock::find(slug) {
                Some(strategy) => {
                    let job = Job::new(1, Duration::ZERO, WAIT);
                    (strategy.spec.deduct)(&self.ctx, &job).await.map(drop)
                }
                None => {
                    let step = seckill::find(slug).expect("a step");
                    let order = Order::new(voucher, user, Duration::ZERO, WAIT);
                    (step.spec.place)(&self.ctx, &order).await.map(drop)
                }
            };
            // ZooKeeper's client connects in the background.
            wait_until(slug, || async { Ok(sell(1).await.is_ok()) }).await?;
            self.reset("", "").await?;
            let received = self.record(async { Ok(sell(2).await?) }).await;
            sides.insert(slug.to_owned(), received.context(slug)?);
            self.outsider().await?.execute("DELETE FROM tb_voucher_order").await?;
        }
        self.ctx.close(TEST_WAIT_LIMIT).await;
        Ok(sides)
    }

    async fn printed(&self) -> Result<Sides> {
        let (interop, java) = (Path::new("interop"), Library::Printed.versions()[0]);
        if !java.is_built(interop) {
            java.check_build_tools(interop).await?;
            java.build(interop).await?;
        }
        let mut program = java.command(interop);
        let at = self.lab.addresses();
        let zookeeper = self.zookeeper.address();
        program.args([&at.mysql.url, &at.redis[0].url, &zookeeper, RUN]);
        let log = java.folder(interop).join("statements.log");
        let peer = Peer::start(java, program, &log).await?;
        let tell = async |line: String| peer.send_command("A", line).wait_at_most(WAIT).await;
        let voucher = tell(format!("voucher {PIECES}")).await?;
        let mut outsider = self.outsider().await?;
        wait_until("HikariCP has all its connections", || async {
            let mut outsider = self.outsider().await?;
            let open = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE db = '{RUN}'");
            let open: i64 = sqlx::query_scalar(&open).fetch_one(&mut outsider).await?;
            Ok(open == JAVA_POOL_SIZE)
        })
        .await?;
        let mut sides = Sides::new();
        for (slug, command) in PRINTED {
            let line = |user| match command.starts_with("order") {
                true => format!("{command} {user} {voucher}"),
                false => command.to_owned(),
            };
            self.reset(&format!("{RUN}."), &format!("{RUN}_")).await?;
            tell(line(1)).await.context(slug)?;
            self.reset(&format!("{RUN}."), &format!("{RUN}_")).await?;
            let sale = async {
                let answer = tell(line(2)).await?;
                ensure!(!answer.starts_with("fail"), "{answer}");
                Ok(())
            };
            sides.insert(slug.to_owned(), self.record(sale).await.context(slug)?);
            outsider.execute(&*format!("DELETE FROM {RUN}.tb_voucher_order")).await?;
        }
        peer.stop().await;
        Ok(sides)
    }

    async fn outsider(&self) -> Result<MySqlConnection> {
        Ok(MySqlConnection::connect(&self.lab.addresses().mysql.url).await?)
    }

    /// Both sides read and write the same numbers.
    async fn reset(&self, database: &str, keys: &str) -> Result<()> {
        let row = format!("UPDATE {database}db_stock SET count = {PIECES}, version = 0 WHERE id = 1");
        self.outsider().await?.execute(&*row).await?;
        let mut set = redis::cmd("SET");
        set.arg(format!("{keys}stock")).arg(PIECES);
        Ok(set.exec_async(&mut self.redis.clone()).await?)
    }

    /// What the servers receive until `sale` is over.
    async fn record(&self, sale: impl Future<Output = Result<()>>) -> Result<Received> {
        const STATEMENTS: &str = "SELECT CAST(argument AS CHAR) FROM mysql.general_log \
                                  WHERE command_type IN ('Query', 'Execute') AND thread_id <> CONNECTION_ID()";
        let mut mysql = self.outsider().await?;
        mysql.execute("TRUNCATE mysql.general_log").await?;
        self.commands_so_far().await?;
        self.requests.lock().clear();
        sale.await?;
        let statements: Vec<String> = sqlx::query_scalar(STATEMENTS).fetch_all(&mut mysql).await?;
        let commands = self.commands_so_far().await?;
        let requests = std::mem::take(&mut *self.requests.lock());
        let masked = |lines: Vec<String>| lines.iter().map(|line| masked(line)).collect();
        Ok([statements, commands, requests].map(masked))
    }

    /// What Redis has received since the last call.
    async fn commands_so_far(&self) -> Result<Vec<String>> {
        let mark = "ECHO so far";
        let mut echo = redis::cmd("ECHO");
        echo.arg("so far").exec_async(&mut self.redis.clone()).await?;
        wait_until("the monitor has come so far", || async { Ok(self.commands.lock().iter().any(|line| line == mark)) }).await?;
        let mut commands = std::mem::take(&mut *self.commands.lock());
        commands.retain(|line| line != mark);
        Ok(commands)
    }
}

/// Replaces what differs from run to run.
fn masked(line: &str) -> String {
    const HEX: char = 'x';
    const DIGIT: char = '0';
    const MASKS: [(&str, &str); 6] = [
        ("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "<uuid>"),
        ("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "<script>"),
        ("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "<uuid>"),
        ("0000-00-00 00:00:00", "<time>"),
        ("0000:00:00", "<day>"),
        ("0000000000", "<number>"),
    ];
    let mut words: Vec<_> = line.split_whitespace().collect();
    if let ["SET", _, thread, "EX", "1200", _] = &mut words[..]
        && thread.parse::<i64>().is_ok()
    {
        *thread = "<thread>";
    }
    let line = words.join(" ").replace(&format!("/{RUN}/"), "/");
    let line = line.replace(&format!("{RUN}_"), "");
    let digit = |c: char| c.is_ascii_digit();
    let is = |(pattern, at): (char, char)| match pattern {
        HEX => at.is_ascii_hexdigit(),
        DIGIT => digit(at),
        other => other == at,
    };
    let begins = |rest: &str, pattern: &str| rest.chars().count() >= pattern.len() && pattern.chars().zip(rest.chars()).all(is);
    let (mut masked, mut rest) = (String::new(), &line[..]);
    while let Some(next) = rest.chars().next() {
        match MASKS.iter().find(|(pattern, _)| begins(rest, pattern)) {
            Some((pattern, mask)) => {
                masked += mask;
                rest = &rest[pattern.len()..];
                // The number of an owner's thread or request, or a fraction of a second.
                let number = rest.strip_prefix([':', '-', '.']).filter(|text| text.starts_with(digit));
                rest = number.unwrap_or(rest).trim_start_matches(digit);
            }
            None => {
                masked.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    masked
}

/// Writes down each command that Redis executes; what a script runs begins with `lua`.
async fn monitor(url: &str, commands: Lines) -> Result<()> {
    let address = url.strip_prefix("redis://").context("another URL")?;
    let mut redis = TcpStream::connect(address).await?;
    redis.write_all(b"MONITOR\r\n").await?;
    let mut lines = BufReader::new(redis).lines();
    lines.next_line().await?;
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            // +1764268915.123456 [0 127.0.0.1:40000] "SET" "stock" "4999"
            let (client, words) = line.split_once("] ").expect("a line of MONITOR");
            let mut words: Vec<_> = words.trim_matches('"').split("\" \"").collect();
            if words[0].eq_ignore_ascii_case("EVAL") {
                words[1] = "<script>";
            }
            let lua = if client.ends_with(" lua") { "lua " } else { "" };
            commands.lock().push(format!("{lua}{}", words.join(" ")));
        }
    });
    Ok(())
}

/// A proxy to ZooKeeper that writes down each request.
fn proxy(server: String, requests: Lines) -> Result<Proxy> {
    let connections = Mutex::new(HashMap::<u64, Messages>::new());
    Ok(Proxy::filtered(server, move |piece| {
        if !piece.from_server {
            let mut connections = connections.lock();
            let messages = connections.entry(piece.connection).or_default();
            for message in messages.add(piece.bytes) {
                requests.lock().extend(Request::parse(&message).and_then(in_words));
            }
        }
        true
    })?)
}

/// A request in words; none for `sync`, by which our client keeps its session alive.
fn in_words(request: Request) -> Option<String> {
    let end = match &request.operation {
        Operation::Sync => return None,
        Operation::Create { data, flags } => {
            let mode = ["", "ephemeral", "sequential", "ephemeral sequential", "container"];
            let mode = mode.get(usize::try_from(*flags).ok()?)?;
            format!("{mode} {}", String::from_utf8_lossy(data))
        }
        Operation::Delete { version } => format!("version {version}"),
        Operation::Exists { watches: true } | Operation::GetData { watches: true } | Operation::GetChildren { watches: true } => {
            "watch".to_owned()
        }
        _ => String::new(),
    };
    let line = format!("{} {} {end}", request.kind, request.path);
    Some(line.trim_end().to_owned())
}
