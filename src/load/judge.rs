//! `oversell judge`: runs any load tool, and says from the books of the instances and from the stores what it has bought.
//!
//! A tool's own numbers cannot say it: one leaves out what was under way at its end, another sends a request again and reports one.
//! Here each instance says what it has received ([`Received`]), and the stores say what is gone.

use super::{
    books::{BooksBody, PRODUCT, Received},
    history::OutcomeCounts,
    measure::name_parser,
    plan::PLENTIFUL_STOCK,
    stock_api::{self, StockApi},
    target::token,
    terminal::with_commas,
    verdict::{self, StockChange, Verdict},
};
use crate::{
    server::Server,
    stock::{self, Store, Strategy},
};
use futures::future::try_join_all;
use oversell_lab::{
    addresses::{Addresses, LAB_JSON},
    terminal::{
        chinese::localized,
        failure::{Failure, unusable, unusable_localized},
        stdout::{Output, Outputs, colour_mark, print_to_stderr, say, stdout_of_child},
    },
};
use serde::Serialize;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use tokio::{
    process::Command,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

/// How long requests that are under way when the command ends may take: as long as nginx waits for one.
const END_TIMEOUT: Duration = Duration::from_secs(680);
/// After which it is said that they are waited for.
const SILENCE: Duration = Duration::from_secs(2);
/// How often it is asked whether any is.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// What stands for the address in a word of the command, and the variable that has it.
const PLACE: &str = "{url}";
const VARIABLE: &str = "OVERSELL_URL";

/// Runs a load tool, and says from the books of instances and stores what it has bought.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  oversell judge --lab --strategy none -- wrk -c 20 -d 5s {url}
  oversell judge --strategy single-update --stock 100 -- hey -n 200 {url}   against the lab that runs
  oversell judge --lab --json books.json -- ./my-load.sh                     which finds the service at $OVERSELL_URL

The stock of product 1 is set, the command runs, and when nothing is under way any more the instances say what they have received
for it. {url} in the command's words, and OVERSELL_URL in its environment, are where one buys by the strategy; without --strategy
they are the service. A request whose client has hung up counts as unknown: it may have taken a piece or not.

Exit status: 0 every promise kept, 1 one was broken or a fault did not show, 2 bad usage, no lab, a command that cannot be run or
ends with a failure, 130 cut short by a signal.")]
pub struct Args {
    /// By which strategy the command buys
    #[arg(long, value_name = "NAME", value_parser = name_parser(stock::ALL.iter(), |one| one.slug), hide_possible_values = true)]
    strategy: Option<&'static Strategy>,
    /// Pieces in stock before the command
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(i64).range(0..=PLENTIFUL_STOCK))]
    stock: i64,
    /// Where a running lab has written its addresses
    #[arg(long, value_name = "PATH", default_value = LAB_JSON)]
    lab_json: PathBuf,
    /// Writes every figure to this file; - is stdout, and the table then goes to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<Output>,
    /// The command and its words
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Args {
    /// Whether the command buys by a strategy that needs etcd.
    pub fn needs_etcd(&self) -> bool {
        self.strategy.is_some_and(|strategy| strategy.spec.needs.contains(&Server::Etcd))
    }
}

impl Outputs for Args {
    fn outputs(&self) -> Vec<&Output> {
        self.json.iter().collect()
    }
}

/// What was bought, as the JSON has it.
#[derive(Debug, Serialize)]
struct Judgement {
    strategies: Vec<Bought>,
    /// Pieces that have left the stores in which these strategies count.
    gone: i64,
    /// Pieces sold that are not gone.
    oversold: i64,
}

/// What was bought by one strategy.
#[derive(Debug, Serialize)]
struct Bought {
    name: String,
    #[serde(flatten)]
    books: Received,
}

/// Runs the command line's command against the lab at `at`, or the one that runs.
/// Errors: [`Failure::Promise`] where a promise was broken or an unsafe strategy did not show its fault, [`Failure::Unusable`] where
/// no lab answers, the command cannot be run or fails, or it has bought nothing of product 1, [`Failure::Interrupted`] after a signal.
pub async fn run(args: Args, at: Option<Addresses>, stop: CancellationToken) -> Result<(), Failure> {
    let lab = at.map_or_else(|| Addresses::read_running_lab(&args.lab_json), Ok)?;
    let token = token(Some(&lab));
    let product = StockApi { base: &lab.http, stock_id: PRODUCT, strategy: args.strategy, token: token.as_ref() };
    product.put(args.stock).await?;
    let before = books(&lab).await?;

    let failed = run_command(&args, &lab, &stop).await?;
    let after = books_at_end(&lab, &stop).await?;
    let mut found = Judgement { strategies: bought_between(&before, &after)?, gone: 0, oversold: 0 };
    let mut broken = Vec::new();
    for store in [Store::MySql, Store::Redis] {
        broken.extend(found.judge_store(store, &product, args.stock).await?);
    }
    if let Some(file) = &args.json {
        file.write_json(&found)?;
    }
    match failed {
        Some(why) => Err(Failure::Unusable(why)),
        None if found.strategies.is_empty() => Err(unusable_localized!(
            "这个命令没有来买商品 {PRODUCT}：它的地址应是 {PLACE} 或 ${VARIABLE}",
            "the command has bought nothing of product {PRODUCT}: its address should be {PLACE} or ${VARIABLE}"
        )),
        None if !broken.is_empty() => Err(Failure::Promise(broken.join("; "))),
        None => Ok(()),
    }
}

/// Runs the command to its end, with the address in its words and its environment. Returns how it failed, if it did.
async fn run_command(args: &Args, lab: &Addresses, stop: &CancellationToken) -> Result<Option<String>, Failure> {
    let base = stock_api::without_trailing_slash(&lab.http);
    let url = args.strategy.map_or_else(|| base.to_owned(), |of| format!("{base}/check/lock/{}", of.slug));
    let words: Vec<_> = args.command.iter().map(|word| word.replace(PLACE, &url)).collect();
    let (program, words) = words.split_first().ok_or_else(|| unusable!("there is no command"))?;
    let mut child = Command::new(program);
    child.args(words).env(VARIABLE, &url).stdout(stdout_of_child()).kill_on_drop(true);
    let mut child =
        child.spawn().map_err(|why| unusable_localized!("{program} 运行不了：{why}", "{program} cannot be run: {why}"))?;
    let ended = tokio::select! {
        ended = child.wait() => ended.map_err(|why| unusable!("{program}: {why}"))?,
        () = stop.cancelled() => return Err(interrupted()),
    };
    Ok((!ended.success()).then(|| localized!("{program} 失败了：{ended}", "{program} has failed: {ended}")))
}

fn interrupted() -> Failure {
    Failure::Interrupted(localized!("被信号打断", "cut short by a signal"))
}

/// The books of each instance.
async fn books(lab: &Addresses) -> Result<Vec<BooksBody>, Failure> {
    let read = lab.instances.iter().map(async |instance| {
        let url = format!("{}/health/books", stock_api::without_trailing_slash(&instance.url));
        stock_api::read(&url).await
    });
    try_join_all(read).await
}

/// What was bought between two looks into the books of the same instances.
/// Errors: if one was started again in between, even if it has been asked more since.
fn bought_between(before: &[BooksBody], after: &[BooksBody]) -> Result<Vec<Bought>, Failure> {
    let mut bought = BTreeMap::<&str, Received>::new();
    for (before, after) in before.iter().zip(after) {
        if before.id != after.id {
            return Err(unusable_localized!(
                "有实例中途重启，它的账没有了",
                "an instance was started again meanwhile, and its books with it"
            ));
        }
        for (name, books) in &after.strategies {
            let of = bought.entry(name).or_default();
            *of = of.plus(books.since(before.strategies.get(name).copied().unwrap_or_default()));
        }
    }
    bought.retain(|_, books| books.received > 0);
    Ok(bought.into_iter().map(|(name, books)| Bought { name: name.to_owned(), books }).collect())
}

/// The books once nothing is under way any more.
async fn books_at_end(lab: &Addresses, stop: &CancellationToken) -> Result<Vec<BooksBody>, Failure> {
    let begin = Instant::now();
    let mut is_told = false;
    loop {
        let books = books(lab).await?;
        let under_way: u64 = books.iter().flat_map(|of| of.strategies.values()).map(Received::under_way).sum();
        if under_way > 0 && !is_told && begin.elapsed() > SILENCE {
            is_told = true;
            let waits = localized!("等在途的 {under_way} 个请求", "waiting for {under_way} requests that are under way");
            print_to_stderr(format_args!("{waits}"));
        }
        match under_way {
            0 => return Ok(books),
            _ if stop.is_cancelled() => return Err(interrupted()),
            _ if begin.elapsed() > END_TIMEOUT => {
                let waited = END_TIMEOUT.as_secs();
                return Err(unusable_localized!(
                    "命令结束 {waited} 秒后还有 {under_way} 个请求没有结果",
                    "{under_way} requests are still under way {waited} s after the command"
                ));
            }
            _ => sleep(POLL_INTERVAL).await,
        }
    }
}

impl Judgement {
    /// Says what was bought of the pieces in one store, and what is gone from it. Returns the promises that were not kept.
    async fn judge_store(&mut self, store: Store, product: &StockApi<'_>, before: i64) -> Result<Option<String>, Failure> {
        let of_store = |of: &&Bought| stock::find(&of.name).filter(|strategy| strategy.spec.store == store).is_some();
        let bought: Vec<_> = self.strategies.iter().filter(of_store).collect();
        if bought.is_empty() {
            return Ok(None);
        }
        let stock_change = StockChange { before, after: product.count(store).await? };
        let all = bought.iter().fold(Received::default(), |all, of| all.plus(of.books)).outcomes();
        let (gone, oversold) = (before - stock_change.after, verdict::oversold(stock_change, all).max(0));
        for Bought { name, books } in &bought {
            let [received, sold, sold_out, refused, unknown] =
                [books.received, books.sold, books.sold_out, books.refused, books.unknown].map(|n| with_commas(n as i64));
            say!(
                "{}",
                localized!(
                    "{name}：收到 {received}，卖出 {sold}，售罄 {sold_out}，拒绝 {refused}，未知 {unknown}",
                    "{name}: {received} received, {sold} sold, {sold_out} sold out, {refused} refused, {unknown} unknown"
                )
            );
        }
        let promised: Vec<_> = bought.iter().filter_map(|of| promise_of(&of.name)).collect();
        let kept = is_kept(&promised, stock_change, all);
        let names = bought.iter().map(|of| of.name.as_str()).collect::<Vec<_>>().join(", ");
        let (mark, gone_text, oversold_text) =
            (colour_mark(if kept { "✓" } else { "✗" }), with_commas(gone), with_commas(oversold));
        let mut line = localized!(
            "{names}：少了 {gone_text} 件，超卖 {oversold_text} 件",
            "{names}: {gone_text} gone, {oversold_text} oversold"
        );
        if gone < 0 || gone > (all.sold + all.unknown) as i64 {
            line += &localized!(
                "；与卖出的对不上：策略扣错了，或者另有谁动过库存",
                ", which no sale explains: the strategy took wrongly, or something else changed the stock"
            );
        }
        let verb = match kept {
            true => localized!("如约", "as promised"),
            false => localized!("没有如约", "NOT as promised"),
        };
        say!("{mark} {verb}  {line}");
        self.gone += gone;
        self.oversold += oversold;
        Ok((!kept).then_some(line))
    }
}

/// The verdict that a strategy's promise implies on several instances.
fn promise_of(name: &str) -> Option<Verdict> {
    Some(verdict::expected(stock::find(name)?.spec.promise, false))
}

/// Whether strategies that promise these verdicts have kept them together. A tool that hangs up, or meets a refusal, breaks no
/// promise: the stock must only lie where honest sales leave it.
fn is_kept(promised: &[Verdict], stock_change: StockChange, all: OutcomeCounts) -> bool {
    match verdict::judge(stock_change, all) {
        Verdict::Oversold => !promised.contains(&Verdict::Exact),
        _ if !verdict::stock_within(stock_change.before, all).contains(&stock_change.after) => false,
        _ => promised.contains(&Verdict::Exact),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::books::Books;

    #[test]
    fn new_books_are_noticed_however_much_they_have() {
        let (before, again) = (Books::default(), Books::default());
        drop(before.enter(PRODUCT, "none"));
        let first = [before.read()];
        for books in [&before, &again] {
            (0..2).for_each(|_| drop(books.enter(PRODUCT, "none")));
        }
        drop(again.enter(PRODUCT, "mutex"));
        let bought = bought_between(&first, &[before.read()]).expect("the same books");
        assert_eq!((bought.len(), bought[0].books.received, bought[0].books.unknown), (1, 2, 2));
        assert!(bought_between(&first, &[again.read()]).is_err());
    }

    #[test]
    fn a_judgement_can_say_no() {
        use Verdict::{Exact, Oversold};
        // Pieces before and after; sold, sold out, refused, unknown.
        for (promised, before, after, [sold, sold_out, errors, unknown], kept) in [
            (&[Exact][..], 10, 4, [6, 0, 0, 0], true),
            (&[Exact], 10, 4, [6, 0, 3, 0], true),
            (&[Exact], 10, 3, [6, 0, 0, 1], true),
            (&[Exact], 10, 5, [6, 0, 0, 1], false),
            (&[Exact], 10, 2, [6, 0, 0, 1], false),
            (&[Oversold], 10, 5, [6, 0, 0, 0], true),
            (&[Oversold], 10, 4, [6, 0, 0, 0], false),
            (&[Oversold, Exact], 10, 5, [6, 0, 0, 0], false),
            (&[Oversold, Exact], 10, 4, [6, 0, 0, 0], true),
        ] {
            let all = OutcomeCounts { sold, sold_out, errors, unknown };
            assert_eq!(is_kept(promised, StockChange { before, after }, all), kept, "{promised:?} {before} {after} {all:?}");
        }
    }
}
