//! What a fault of Redis, or of a holder, does to a lock in Redis: shown where it breaks it, and where it does not.
//!
//! A holder that is paused, and a replica that is promoted without the key, are replays: `replay/races.rs`. A way to Redis
//! that is cut and mended is in `lab/members.rs`.

use crate::support::{buyers::under_load, http::*, *};
use reqwest::StatusCode;

/// Redis is killed under load and comes back with what its file has, be that nothing. A request that is caught by it is answered 503;
/// every piece that left the shelf, which is MySQL's, has an answer that said so or one that could not know; then it goes
/// on by itself. The sections are far shorter than the restart, so no holder of before meets one of after; the fenced lock
/// does not rely on that, and where its counter is lost as well, it rises above what the row has seen at the cost of
/// refusals. (What becomes of a stock that Redis itself has: `resets.rs`.)
#[apply(test!)]
#[over([
    ("redis-lock", &[StatusCode::SERVICE_UNAVAILABLE][..]),
    ("redis-fenced", &[StatusCode::SERVICE_UNAVAILABLE, StatusCode::CONFLICT]),
].map(|under| (under.0, under)))]
async fn restarting_redis_under_load_costs_answers_but_no_piece(
    under: (&'static str, &'static [StatusCode]),
) -> Result<()> {
    let (slug, refusals) = under;
    let mut lab = labs::full_lab().await?;
    under_load(&mut lab, slug, refusals, async |lab, buyers| {
        lab.kill("redis").await?;
        buyers.wait_until_refused().await?;
        Ok(lab.restart("redis").await?)
    })
    .await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// What did not go out was not done, and the answer says so: only a request that was sent may have sold a piece.
#[apply(test!)]
async fn what_did_not_reach_redis_is_refused_and_not_unknown() -> Result<()> {
    let mut lab = labs::full_lab().await?;
    let at = lab.addresses().instances[0].url.clone();
    lab.kill("redis").await?;
    let gone = async || Ok(!status(format!("{at}/health/ready")).await?.is_success());
    until("the instance sees that redis is gone", gone).await?;
    for slug in ["redis-script", "redis-write"] {
        let answer = ask_json(check(&at, slug, 0, 300)).await?;
        ensure!(answer["outcome"] == "failed", "{slug}: {answer}");
    }
    lab.restart("redis").await?;
    labs::keep_for_next_test(lab);
    Ok(())
}
