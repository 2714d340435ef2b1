//! The words of the bench in Chinese: its figures keep their English names in files.

use oversell_lab::terminal::chinese;

/// Parts of names with their Chinese; a longer part stands before one that it contains.
const CHINESE: &[(&str, &str)] = &[
    ("FOR UPDATE without HTTP", "不经 HTTP 的 FOR UPDATE"),
    ("UPDATE without HTTP", "不经 HTTP 的 UPDATE"),
    ("the same SQL without HTTP", "不经 HTTP 的同样 SQL"),
    ("one client, nobody else", "一个客户端，没有别人"),
    (
        "one client: create, section, delete",
        "一个客户端：建节点、临界区、删节点",
    ),
    (
        "one row: each commit waits for the one before; HTTP shares the cores",
        "一行：提交要等前一个；HTTP 也占核",
    ),
    (
        "HTTP: one commit is for all who wait",
        "HTTP：一次提交为所有等着的人",
    ),
    (
        "HTTP: one transaction is for all who wait",
        "HTTP：一个事务为所有等着的人",
    ),
    (
        "commits of 16 rows; HTTP shares the cores",
        "16 行的提交；HTTP 也占核",
    ),
    ("one row, locked for four round trips", "一行，锁住四次往返"),
    (
        "one at a time: lock, two statements, unlock",
        "一次一个：加锁、两条语句、解锁",
    ),
    (
        "one at a time, each with two writes of ZooKeeper",
        "一次一个，各写 ZooKeeper 两次",
    ),
    ("one command for each", "每个一条命令"),
    ("one command for 100", "一百个一条命令"),
    ("one order at a time in each instance", "每个实例一次一单"),
    (
        "HTTP; the task that writes behind shares the cores",
        "HTTP；后台写库的任务也占核",
    ),
    (
        "one row of the voucher: each commit waits for the one before",
        "优惠券的一行：提交要等前一个",
    ),
    ("the fastest of them", "其中最快的"),
    ("1,000 connections at once", "同时 1,000 个连接"),
    (
        "a ZooKeeper session, and how often the lab looks",
        "ZooKeeper 会话，以及实验环境多久看一次",
    ),
    (
        "a task, a request and a guard for each",
        "各有一个任务、一个请求、一个 guard",
    ),
    (
        "nothing is kept for a key that nobody uses",
        "没人用的键什么也不留",
    ),
    ("memory of an instance, its peak", "一个实例的内存峰值"),
    ("start-up of an instance", "一个实例的启动"),
    (
        "slowest of 10, 100 and 1,000 waiters",
        "10、100、1,000 人等待时最慢的",
    ),
    ("longest wait over the mean", "最长等待比平均"),
    ("p99 over the median", "p99 比中位数"),
    (" ms inside, one instance", " 毫秒在临界区，一个实例"),
    ("orders by ", "下单："),
    ("ids, one by one", "编号，逐个"),
    ("ids, in batches of 100", "编号，一百个一批"),
    ("INCR alone", "只有 INCR"),
    (
        "100,000 keys of the layer, held at once",
        "锁层的 100,000 个键，同时持有",
    ),
    (
        "100,000 other keys after them: more than the first took",
        "之后另外 100,000 个键：比先前多用的",
    ),
];

/// A name in the language of the terminal.
pub(super) fn localized(name: &str) -> String {
    match chinese::is_wanted() {
        true => in_chinese(name),
        false => name.to_owned(),
    }
}

/// Replaces every part of the name that [`CHINESE`] has.
fn in_chinese(name: &str) -> String {
    let replace = |name: String, (english, chinese): &(&str, &str)| name.replace(english, chinese);
    CHINESE.iter().fold(name.to_owned(), replace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::bench::thresholds::thresholds;

    #[test]
    fn every_figure_has_its_chinese() {
        for threshold in thresholds() {
            let figures = [
                threshold.measured.name(),
                threshold.ceiling_name.to_owned(),
                threshold.bounded_by.to_owned(),
            ];
            for english in figures {
                let words = in_chinese(&english);
                let is_code =
                    |word: &str| word.chars().any(|c| c == '-' || !c.is_ascii_lowercase());
                assert!(
                    words
                        .split_whitespace()
                        .all(|word| !word.is_ascii() || is_code(word)),
                    "{words}"
                );
            }
        }
    }
}
