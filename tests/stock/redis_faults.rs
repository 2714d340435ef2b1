//! Faults of Redis, or of a holder, on a lock in Redis: when they break it and when not.
//!
//! A paused holder, and a replica promoted without the key, are replays: `replay/races.rs`. A link to Redis that is cut
//! and mended is in `lab/members.rs`.

use crate::support::{buyers::under_load, http::*, *};
use reqwest::StatusCode;

/// Redis is killed under load and returns with what its file has, or with nothing. Affected requests get 503; every
/// piece that left the stock in MySQL has an answer that said so, or one that could not know; then sales go on.
/// Sections are far shorter than the restart, so old and new holders never meet. The fenced lock does not rely on that:
/// if its counter is lost too, it rises again above the row's token at the cost of refusals. (For stock kept in Redis
/// itself see `resets.rs`.)
#[apply(test!)]
#[over([
    ("redis-lock", &[StatusCode::SERVICE_UNAVAILABLE][..]),
    ("redis-fenced", &[StatusCode::SERVICE_UNAVAILABLE, StatusCode::CONFLICT]),
].map(|under| (under.0, under)))]
async fn restarting_redis_under_load_costs_answers_but_no_piece(under: (&'static str, &'static [StatusCode])) -> Result<()> {
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

/// A request that was not sent did nothing, and the answer says so: only a sent request may have sold a piece.
#[apply(test!)]
async fn an_unsent_request_is_refused_and_not_unknown() -> Result<()> {
    let mut lab = labs::full_lab().await?;
    let at = lab.addresses().instances[0].url.clone();
    lab.kill("redis").await?;
    let gone = async || Ok(!status(format!("{at}/health/ready")).await?.is_success());
    wait_until("the instance sees that redis is gone", gone).await?;
    for slug in ["redis-script", "redis-write"] {
        let answer = ask_json(check_url(&at, slug, 0, 300)).await?;
        ensure!(answer["outcome"] == "failed", "{slug}: {answer}");
    }
    lab.restart("redis").await?;
    labs::keep_for_next_test(lab);
    Ok(())
}
