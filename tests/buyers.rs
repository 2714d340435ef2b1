//! Buyers who ask without end while a server is broken under them, and the account of what they were answered.

use crate::instances::{MINUTE, check};
use reqwest::{Client, StatusCode};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinHandle;

type Outcome = Result<(), String>;

/// The longest that a test waits for what must come.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// More than any crowd buys in that time.
pub(crate) const PIECES: i64 = 1_000_000;
const BUYERS: usize = 20;

/// A crowd at one address.
pub(crate) struct Buyers {
    pub(crate) count: Arc<Count>,
    crowd: Vec<JoinHandle<Outcome>>,
}

impl Buyers {
    /// Sends them. Whoever is answered neither that it has a piece nor one of `refusals` goes home with that.
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
                            .get(check(&base, slug, 0, MINUTE))
                            .header("accept", "application/json");
                        let answer = answer.send().await.map_err(text)?;
                        let refused = refusals.contains(&answer.status());
                        let (status, body) = (answer.status(), answer.text().await.map_err(text)?);
                        let counter = match status {
                            StatusCode::OK => &count.sold,
                            _ if refused && body.contains("\"unknown\"") => &count.unknown,
                            _ if refused => &count.refused,
                            other => return Err(format!("{slug}: {other} {body}")),
                        };
                        counter.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        Self { count, crowd }
    }

    /// Waits until somebody has been refused.
    pub(crate) async fn are_told(&self) -> Outcome {
        until("somebody is told", || async {
            Ok(self.count.refused.load(Ordering::Relaxed) > 0)
        })
        .await
    }

    /// Waits until so many more pieces are sold.
    pub(crate) async fn buy(&self, more: i64) -> Outcome {
        self::more(&self.count.sold, more).await
    }

    /// Lets each finish what it asked for.
    pub(crate) async fn go_home(self) -> Result<Arc<Count>, String> {
        self.count.over.store(true, Ordering::Relaxed);
        for buyer in self.crowd {
            buyer.await.map_err(text)??;
        }
        Ok(self.count)
    }
}

/// What the buyers were answered.
#[derive(Debug, Default)]
pub(crate) struct Count {
    pub(crate) sold: AtomicI64,
    pub(crate) sold_by_others: AtomicI64,
    pub(crate) refused: AtomicI64,
    pub(crate) unknown: AtomicI64,
    pub(crate) over: AtomicBool,
}

impl Count {
    /// Whether these answers explain that so many pieces have left the shelf.
    pub(crate) fn explains(&self, gone: i64) -> Outcome {
        let sold = self.sold.load(Ordering::Relaxed) + self.sold_by_others.load(Ordering::Relaxed);
        let unknown = self.unknown.load(Ordering::Relaxed);
        if (sold..=sold + unknown).contains(&gone) {
            Ok(())
        } else {
            Err(format!(
                "{sold} were sold, {unknown} are unknown, and {gone} left the shelf"
            ))
        }
    }
}

/// Waits until so many more are counted.
pub(crate) async fn more(counter: &AtomicI64, by: i64) -> Outcome {
    let enough = counter.load(Ordering::Relaxed) + by;
    until("pieces are sold", || async {
        Ok(counter.load(Ordering::Relaxed) >= enough)
    })
    .await
}

/// Looks until it is so.
pub(crate) async fn until<F: Future<Output = Result<bool, String>>>(
    what: &str,
    holds: impl Fn() -> F,
) -> Outcome {
    until_seen(Duration::from_millis(5), what, holds).await
}

/// The same, looking that often: where each look costs what it looks at.
pub(crate) async fn until_seen<F: Future<Output = Result<bool, String>>>(
    every: Duration,
    what: &str,
    holds: impl Fn() -> F,
) -> Outcome {
    let looks = async {
        while !holds().await? {
            tokio::time::sleep(every).await;
        }
        Ok(())
    };
    tokio::time::timeout(LONG, looks)
        .await
        .map_err(|_| format!("never: {what}"))?
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
