//! Buyers that buy while a server is broken, with counts of their answers.

use super::{http::*, leftovers::ensure_nothing_is_left, *};
use oversell::stock::Store;
use oversell_lab::lab::Lab;
use reqwest::{Client, StatusCode};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, Ordering},
};
use tokio::task::JoinHandle;

pub(crate) const PIECES: i64 = 1_000_000;
const BUYERS: usize = 20;

pub(crate) struct Buyers {
    pub(crate) count: Arc<Count>,
    crowd: Vec<JoinHandle<Result<()>>>,
}

impl Buyers {
    /// Starts the buyers. An answer that is neither a sale nor one of `refusals` ends a buyer with an error.
    pub(crate) fn send(
        client: &Client,
        base: &str,
        slug: &'static str,
        refusals: &'static [StatusCode],
    ) -> Self {
        let count = Arc::new(Count::default());
        let crowd = (0..BUYERS)
            .map(|_| {
                let (client, base, count) = (client.clone(), base.to_owned(), Arc::clone(&count));
                tokio::spawn(async move {
                    while !count.over.load(Ordering::Relaxed) {
                        let answer = client
                            .get(check_url(&base, slug, 0, MINUTE))
                            .header("accept", "application/json");
                        let answer = answer.send().await?;
                        let refused = refusals.contains(&answer.status());
                        let (status, body) = (answer.status(), answer.text().await?);
                        let counter = match status {
                            StatusCode::OK => &count.sold,
                            _ if refused && body.contains("\"unknown\"") => &count.unknown,
                            _ if refused => &count.refused,
                            other => bail!("{slug}: {other} {body}"),
                        };
                        counter.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        Self { count, crowd }
    }

    pub(crate) async fn wait_until_refused(&self) -> Result<()> {
        wait_until("somebody is told", || async {
            Ok(self.count.refused.load(Ordering::Relaxed) > 0)
        })
        .await
    }

    /// Waits until this many more pieces are sold.
    pub(crate) async fn buy(&self, more: i64) -> Result<()> {
        self::wait_for_more(&self.count.sold, more).await
    }

    /// Stops the buyers after their current request.
    pub(crate) async fn finish(self) -> Result<Arc<Count>> {
        self.count.over.store(true, Ordering::Relaxed);
        for buyer in self.crowd {
            buyer.await??;
        }
        Ok(self.count)
    }
}

/// Buyers on all instances while `break_and_mend` runs: afterwards they go on, their answers explain the missing
/// pieces, and nothing is left.
pub(crate) async fn under_load(
    lab: &mut Lab,
    slug: &'static str,
    refusals: &'static [StatusCode],
    fault: impl AsyncFnOnce(&mut Lab, &Buyers) -> Result<()>,
) -> Result<Arc<Count>> {
    let (client, nginx) = (Client::new(), lab.addresses().http.clone());
    put_stock(&nginx, PIECES).await?;
    let buyers = Buyers::send(&client, &nginx, slug, refusals);
    buyers.buy(200).await?;
    fault(lab, &buyers).await?;
    buyers.buy(200).await?;
    let count = buyers.finish().await?;
    let gone = PIECES - stock(&nginx, Store::MySql).await?;
    ensure_nothing_is_left(lab).await?;
    count
        .ensure_explains(gone)
        .with_context(|| slug.to_owned())?;
    Ok(count)
}

#[derive(Debug, Default)]
pub(crate) struct Count {
    pub(crate) sold: AtomicI64,
    pub(crate) refused: AtomicI64,
    pub(crate) unknown: AtomicI64,
    pub(crate) over: AtomicBool,
}

impl Count {
    /// Checks that these answers explain the missing pieces.
    pub(crate) fn ensure_explains(&self, gone: i64) -> Result<()> {
        let sold = self.sold.load(Ordering::Relaxed);
        let unknown = self.unknown.load(Ordering::Relaxed);
        ensure!(
            (sold..=sold + unknown).contains(&gone),
            "{sold} were sold, {unknown} are unknown, and {gone} left the shelf"
        );
        Ok(())
    }
}
