//! [002] Global ids: a time stamp and a counter of Redis.

use super::tools::got;
use crate::course::{Cluster, NoVerdict, Seen, Words};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use std::collections::HashSet;

/// The text's test: so many tasks of so many ids each.
const TASKS: usize = 300;
const EACH: usize = 100;

#[derive(Deserialize)]
struct Id {
    id: String,
}

pub(super) async fn unique(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let url = format!("{}/id/course?count={EACH}", on.three());
    let tasks = stream::iter(0..TASKS).map(|_| async {
        let ids: Vec<Id> = serde_json::from_value(got(on, &url).await?)?;
        ids.iter()
            .map(|id| id.id.parse::<i64>().map_err(NoVerdict::failed))
            .collect::<Result<Vec<_>, _>>()
    });
    let batches: Vec<Vec<i64>> = tasks.buffer_unordered(50).try_collect().await?;
    let batches = match twin {
        true => vec![batches[0].clone(); TASKS],
        false => batches,
    };
    let grow = batches.iter().all(|ids| ids.is_sorted());
    let all = batches.iter().map(Vec::len).sum::<usize>();
    let distinct = batches.iter().flatten().collect::<HashSet<_>>().len();
    let words = Words::new(
        format!(
            "取了 {all} 个，不同的有 {distinct} 个；每一批{}。",
            if grow { "都递增" } else { "不都递增" }
        ),
        format!(
            "{all} ids were taken, {distinct} of them differ; each batch {}.",
            if grow { "grows" } else { "does not grow" }
        ),
    );
    Ok(
        Seen::holds(all == TASKS * EACH && distinct == all && grow, words)
            .value("ids", all)
            .value("distinct", distinct),
    )
}
