//! The matrix in words: a table for each engine, in Chinese or in English.

use super::{ENGINES, Engine, Fault, FaultResult, Matrix};
use crate::trials::table::Lang;
use oversell::load::terminal::{self, Column};
use oversell_lab::terminal::bilingual::Bilingual;

/// The page target/docs/faults.md, from the run that `make faults` has left in `target/faults.json`; `None` without one.
#[cfg(test)]
pub(in crate::trials) fn page(lang: Lang) -> Option<String> {
    let last = std::fs::read_to_string(crate::trials::docs::in_repository("target/faults.json")).ok()?;
    let last = serde_json::from_str(&last);
    let last = last.unwrap_or_else(|why| panic!("target/faults.json: {why}"));
    Some(page_of(&last, lang))
}

/// The page of this run.
#[cfg(test)]
fn page_of(found: &Matrix, lang: Lang) -> String {
    let (head, conditions) = (lang.of(HEAD), conditions(found, lang));
    format!("{head}\n{conditions}{}", tables(found, lang))
}

#[cfg(test)]
const HEAD: Bilingual = Bilingual::of("# 故障矩阵

[English](faults.md)

由 `make docs` 从 `make faults` 的一次运行生成。每种服务器上，用到它的策略同时卖，各卖各的商品，
每个实例一个买家，每个请求在临界区停 10 ms，最多等 3 s；正卖着，被写的那个节点或者 Leader 出故障，8 秒后修好，直到每种策略又卖出 20 件。

- **丢**：已答“卖出”，库存却未减。**重**：重复售出，同一件（答的余量相同）答给了两个买家；不说余量的 `single-update` 系列，这两种都算“丢”。
- **未知**：不知道做了没有；括号里是至少做了几个。**停**：最长多久没有卖出一件，秒。
- **承诺**：`每件一次` 不丢不重，也不会凭空少；`无` 表示这种故障下不作承诺。未兑现的用粗体写出，`oversell faults` 的退出码就是 1。不管承诺什么，修好以后都要接着卖。
- `safe` 的策略在任何故障下都承诺每件一次，只有数据在 Redis 里的（`redis-script`、`script-stream`）例外：有从节点时，被提升的从节点可能没有最后几件。带租约的锁只在没有故障时
  承诺：ZooKeeper 停顿 8 秒还不到会话的 10 秒，停顿 15 秒就可能让从未停顿的持有者会话过期，`zk-lock` 一件卖两次，`zk-fenced` 拒绝；etcd 的租约是 5 秒；每个节点都写的集群上的 `GET_LOCK`，没有故障也不承诺。
- 有 Sentinel 时，旧主节点变成从节点，故障才算过去：在那之前写给它的都会丢。*断开*的是主节点和从节点、Sentinel 之间，实例照样连得上它。
- 被杀和停顿，只有一台服务器时还有断开，每种策略都必须感觉得到：至少 1 秒没有卖出，或者有请求被拒、结果未知；三台 ZooKeeper 则要在修好之前有另一台当选。否则这次运行不算数。别的几格可以什么也没感觉到：实例这时可能连着另一台。
", "# The fault matrix

[中文](faults.zh-CN.md)

Made by `make docs` from a run of `make faults`. On each engine all strategies that need it sell at once, each a product of its own: a
buyer at each instance, 10 ms inside, a wait of 3 s at most. While they sell, the node that is written or the server that leads is hit,
and mended after 8 s; then each strategy sells 20 pieces more.

- **lost**: sold by answer, and still on the shelf. **doubled**: the same piece (the same number left) was answered to two buyers;
  of the `single-update` family, which tells no number, both are `lost`.
- **unknown**: nobody knows whether it was done; in brackets how many were, at least. **gap**: the longest time without a sale, in seconds.
- **promise**: `each once`: none lost, none doubled, none gone without a buyer; `none`: no promise under this fault. One that was not kept
  stands in bold, and `oversell faults` exits with 1. Whatever it promises, a strategy must sell again once the fault is mended.
- What is `safe` promises each once under every fault, but for what is in Redis (`redis-script`, `script-stream`) where it has replicas:
  the one that is promoted may lack the last sales. A lock with a lease promises it only while nothing breaks, and `GET_LOCK` on a
  cluster whose nodes all write not even then. Paused for 8 s, ZooKeeper stays below its session of 10 s; paused for 15 s, it may end the
  session of a holder that was never paused, and `zk-lock` sells a piece twice, which `zk-fenced` refuses. The leases of etcd are of 5 s.
- With Sentinels a fault is over once the primary that was follows: until then it takes writes, which are lost. *Cut off* is the primary from replicas and Sentinels: the instances still reach it.
- A server that is killed or paused, and the only one where it is cut off, must be felt by every strategy: 1 s without a sale, or requests that are
  refused or unknown. Of three ZooKeeper servers another one must lead before the first is mended. Else the run counts for nothing. Other
  cells may show nothing: the instances were at another server then.
");

/// The sentences about the run: its day, its commit, its machine.
#[cfg(test)]
fn conditions(found: &Matrix, lang: Lang) -> String {
    let said = |what: &str| {
        let said = found.conditions.get(what);
        said.map(|said| said.to_string().replace('"', "")).unwrap_or_default()
    };
    let [date, commit, cpu, cores, kernel] = ["date", "commit", "cpu", "cores", "kernel"].map(said);
    match lang {
        Lang::Zh => {
            format!("{date}，提交 {commit}；{cpu}，{cores} 核，所有进程共用，Linux {kernel}。每格一次，时间只作参考。\n")
        }
        Lang::En => format!(
            "{date}, commit {commit}; {cpu}, {cores} cores that all processes share, Linux {kernel}. Each cell once: the times are no measurements.\n"
        ),
    }
}

/// A table in Markdown for each engine that was tried.
#[cfg(test)]
fn tables(found: &Matrix, lang: Lang) -> String {
    let table = |engine: &Engine| {
        let rows = rows(engine, found, lang, true);
        let rows: Vec<_> = rows.iter().map(|cells| line(cells.clone())).collect();
        match rows.is_empty() {
            true => String::new(),
            false => format!(
                "\n## {}\n\n{}{}{}",
                lang.of(engine.title),
                line(COLUMNS.map(|(head, _)| lang.of(head).to_owned())),
                "|---".repeat(COLUMNS.len()) + "|\n",
                rows.concat()
            ),
        }
    };
    ENGINES.iter().map(table).collect()
}

/// A row in Markdown.
#[cfg(test)]
fn line(cells: [String; 9]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// The tables for the terminal, below a legend of their columns.
pub(super) fn terminal_tables(found: &Matrix, lang: Lang) -> String {
    let table = |engine: &Engine| {
        let rows = rows(engine, found, lang, false);
        let title = lang.of(engine.title);
        let table = || terminal::table(&COLUMNS, &[0, 1, 8], &rows, false);
        (!rows.is_empty()).then(|| format!("{title}\n{}\n", table()))
    };
    let tables: Vec<_> = ENGINES.iter().filter_map(table).collect();
    format!("{}\n\n{}", lang.of(LEGEND), tables.join("\n"))
}

/// What the columns of the tables mean.
const LEGEND: Bilingual = Bilingual::of(
    "丢：已答“卖出”，库存却未减。重：重复售出，同一件答给了两个买家。未知：不知道做了没有，括号里是至少做了几个。停：最长多久没有卖出一件，秒。承诺：每件一次，就是不丢不重；无，就是这种故障下不作承诺。",
    "lost: sold by answer, and still on the shelf. doubled: one piece answered to two buyers. unknown: nobody knows whether it was done; in brackets how many were, at least. gap: the longest time without a sale, in seconds. promise: each once is none lost and none doubled; none is no promise under this fault.",
);

const COLUMNS: [Column<[String; 9]>; 9] = [
    (Bilingual::of("故障", "fault"), |cells| cell(cells, 0)),
    (Bilingual::of("策略", "strategy"), |cells| cell(cells, 1)),
    (Bilingual::of("卖出", "sold"), |cells| cell(cells, 2)),
    (Bilingual::of("丢", "lost"), |cells| cell(cells, 3)),
    (Bilingual::of("重", "doubled"), |cells| cell(cells, 4)),
    (Bilingual::of("拒绝", "refused"), |cells| cell(cells, 5)),
    (Bilingual::of("未知", "unknown"), |cells| cell(cells, 6)),
    (Bilingual::of("停", "gap"), |cells| cell(cells, 7)),
    (Bilingual::of("承诺", "promise"), |cells| cell(cells, 8)),
];

fn cell(cells: &[String; 9], n: usize) -> comfy_table::Cell {
    cells[n].as_str().into()
}

/// The cells of all runs of an engine.
fn rows(engine: &Engine, found: &Matrix, lang: Lang, markdown: bool) -> Vec<[String; 9]> {
    let its = found.runs.iter().filter(|run| run.engine == engine.id);
    let rows = its.flat_map(|run| run.cells.iter().map(|cell| row(run.fault, cell, lang, markdown)));
    rows.collect()
}

/// The cells of one strategy under one fault.
fn row(fault: Fault, cell: &FaultResult, lang: Lang, markdown: bool) -> [String; 9] {
    let FaultResult { strategy, sold, lost, doubled, refused, unknown, min_done, .. } = cell;
    let gap = cell.without_service_ms.map_or("–".to_owned(), |ms| format!("{:.1}", ms as f64 / 1000.0));
    let unknown = match unknown {
        0 => "0".to_owned(),
        _ => format!("{unknown} ({min_done})"),
    };
    let promise = match (cell.broken_promise(), cell.promises) {
        (Some(broken), _) if markdown => format!("**{}**", lang.words(&broken)),
        (Some(broken), _) => format!("✗ {}", lang.words(&broken)),
        (None, true) => lang.of(Bilingual::of("每件一次", "each once")).to_owned(),
        (None, false) => lang.of(Bilingual::of("无", "none")).to_owned(),
    };
    let strategy = match markdown {
        true => format!("`{strategy}`"),
        false => strategy.clone(),
    };
    let [sold, lost, doubled, refused] = [sold, lost, doubled, refused].map(ToString::to_string);
    let fault = lang.of(fault.words()).to_owned();
    [fault, strategy, sold, lost, doubled, refused, unknown, gap, promise]
}
