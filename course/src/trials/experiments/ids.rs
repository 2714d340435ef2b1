//! [002] Global ids: a time stamp and a counter of Redis.

use crate::trials::{Cluster, NoVerdict, Observation, tools::get_json};
use futures::{StreamExt, TryStreamExt, stream};
use oversell::claims::Words;
use serde::Deserialize;
use std::collections::HashSet;

experiments! {
    "002.ids" => ids_are_unique(false), twin(true);
}

/// The number of tasks that take ids, as in the text's test; 50 of them are under way at once.
const TASKS: usize = 300;
/// The number of ids that each task takes, as in the text's test.
const IDS_PER_TASK: usize = 100;

/// An entry of the answer of `GET /id/{prefix}`.
#[derive(Deserialize)]
struct Id {
    id: String,
}

/// Claim: ids taken from all instances at once are unique, and ids taken in turn grow. `own_counters`: each instance has its own.
async fn ids_are_unique(on: &Cluster, own_counters: bool) -> Result<Observation, NoVerdict> {
    /// The number of ids taken from the instances in turn: a multiple of three, so that each gives equally many.
    const IN_TURN: usize = 99;
    let prefix = format!("course-{:08x}", fastrand::u32(..));
    let take = async |n: usize, count: usize| {
        let instance = n % on.instances().len();
        let mut url = format!("{}/id/{prefix}", on.instances()[instance]);
        if own_counters {
            url += &format!("-{instance}");
        }
        let ids: Vec<Id> =
            serde_json::from_value(get_json(on, &format!("{url}?count={count}")).await?)?;
        ids.iter()
            .map(|id| id.id.parse::<i64>().map_err(NoVerdict::failed))
            .collect::<Result<Vec<_>, _>>()
    };
    let tasks = stream::iter(0..TASKS).map(|n| take(n, IDS_PER_TASK));
    let batches: Vec<Vec<i64>> = tasks.buffer_unordered(50).try_collect().await?;
    let mut in_turn = Vec::new();
    for n in 0..IN_TURN {
        in_turn.extend(take(n, 1).await?);
    }
    let grow = batches
        .iter()
        .chain([&in_turn])
        .all(|ids| ids.is_sorted_by(|a, b| a < b));
    let all = batches.iter().map(Vec::len).sum::<usize>();
    let distinct = batches.iter().flatten().collect::<HashSet<_>>().len();
    let instances = on.instances().len();
    let words = Words::new(
        format!(
            "{instances} 个实例同时取了 {all} 个，不同的有 {distinct} 个；每一批、以及向各实例轮流要的 {IN_TURN} 个，{}。",
            if grow { "都递增" } else { "不都递增" }
        ),
        format!(
            "{all} ids were taken from {instances} instances at once, {distinct} of them differ; each batch, and {IN_TURN} taken from one instance after the other, {}.",
            if grow { "grow" } else { "do not all grow" }
        ),
    );
    Ok(Observation::holds(
        all == TASKS * IDS_PER_TASK && distinct == all && grow,
        words,
    )
    .value("ids", all)
    .value("distinct", distinct))
}
