//! Buyers that buy while a server is broken: a load, whose row says what they were answered and what left the stock.

use super::{http::*, leftovers::ensure_nothing_is_left, *};
use ::http::Method;
use oversell::load::{
    Plan, Row, THREE_BEHIND_NGINX,
    run::{Snapshot, sell},
};
use oversell_lab::{lab::Lab, terminal::failure::Failure};
use reqwest::StatusCode;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) const PIECES: i64 = 1_000_000;

/// What the buyers have been answered so far.
pub(crate) struct Buyers(watch::Receiver<Snapshot>);

impl Buyers {
    pub(crate) async fn wait_until_refused(&self) -> Result<()> {
        wait_until("somebody is told", || async { Ok(self.0.borrow().errors > 0) }).await
    }

    /// Waits until this many more pieces are sold.
    pub(crate) async fn buy(&self, more: u64) -> Result<()> {
        let enough = self.0.borrow().sold + more;
        wait_until("pieces are sold", || async { Ok(self.0.borrow().sold >= enough) }).await
    }
}

/// A load while `fault` breaks and mends servers, which begins once some pieces are sold, and ends when some more are.
pub(crate) async fn load_during(
    load: impl AsyncFnOnce(&watch::Sender<Snapshot>, &CancellationToken) -> Result<Row, Failure>,
    fault: impl AsyncFnOnce(&Buyers) -> Result<()>,
) -> Result<Row> {
    let (progress, snapshots) = watch::channel(Snapshot::default());
    let (buyers, over) = (Buyers(snapshots), CancellationToken::new());
    let breaking = async {
        let _over = over.clone().drop_guard();
        buyers.buy(200).await?;
        fault(&buyers).await?;
        buyers.buy(200).await
    };
    let (row, broken) = tokio::join!(load(&progress, &over), breaking);
    broken?;
    Ok(row?)
}

/// Buyers on all instances while `fault` breaks and mends a server: afterwards they go on, their answers explain the missing
/// pieces, and nothing is left. An answer that is neither a sale nor one of `refusals` is an error. They buy by GET, which nginx
/// would send again unless told not to.
pub(crate) async fn under_load(
    lab: &mut Lab,
    slug: &'static str,
    refusals: &'static [StatusCode],
    fault: impl AsyncFnOnce(&mut Lab, &Buyers) -> Result<()>,
) -> Result<Row> {
    let nginx = lab.addresses().http.clone();
    put_stock(&nginx, PIECES).await?;
    let mut plan = Plan::new(&nginx, THREE_BEHIND_NGINX, slug);
    (plan.threads, plan.loops) = (20, usize::MAX);
    (plan.stock_id, plan.wait_ms, plan.method) = (1, Some(MINUTE), Method::GET);
    let sells = async |progress: &_, over: &_| sell(&plan, progress, over).await;
    let row = load_during(sells, async |buyers| fault(lab, buyers).await).await?;
    ensure_nothing_is_left(lab).await?;
    let is_known = |why: &String| {
        let mut known = refusals.iter().map(StatusCode::as_str);
        known.any(|status| why.starts_with(status)) || why.starts_with("given up when the run")
    };
    let other = row.reasons.keys().find(|why| !is_known(why));
    ensure!(other.is_none(), "{slug}: {other:?}");
    let (sold, sold_out, unknown) = (row.counts.sold, row.counts.sold_out, row.counts.unknown);
    ensure!(sold_out == 0, "{slug}: {sold_out} were told that none of a million is left");
    let gone = row.pieces_gone();
    ensure!(
        u64::try_from(gone).is_ok_and(|gone| (sold..=sold + unknown).contains(&gone)),
        "{slug}: {sold} were sold, {unknown} are unknown, and {gone} left the shelf"
    );
    Ok(row)
}
