//! Three MariaDB nodes in one Galera cluster, with an instance on each. A node may read old rows; at COMMIT a transaction is compared
//! with those of the other nodes.

use crate::trials::{
    Cluster, NoVerdict, Observation,
    buyers::Buyers,
    observation::explain_ratio,
    own_lab::{GALERA, OwnLab, start_galera_with_causal_reads},
    purchases::SaleCounts,
};
use futures::future::try_join_all;
use oversell::claims::{RatioClaim, Words, words};
use oversell_lab::spread::Spread;
use serde_json::json;

impl SaleCounts {
    fn words(self, strategy: &str) -> Words {
        let Self { sold, kept, gone, .. } = self;
        words!(
            "{strategy} 卖出 {sold} 件，{kept} 件答 lock: kept，库存减少 {gone} 件，超卖 {} 件。",
            "{strategy} sold {sold}, {kept} with lock: kept, {gone} are gone, {} oversold.",
            self.oversold()
        )
    }
}

/// The reads of a strategy: of what the node has, or of all that is committed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reads {
    Plain,
    /// `mysql.causal_reads` is on.
    Causal,
}

/// Claim: a lock that is never lost does not help against a stale read; a fence does, and so do reads that wait for all commits.
pub(super) async fn stale_read_oversells(on: &Cluster, reads: Reads) -> Result<Observation, NoVerdict> {
    /// The number of rounds: more than one, because a stale read does not happen in every round.
    const ROUNDS: usize = 5;
    let causal = start_galera_with_causal_reads(on).await?;
    let plain = match reads {
        Reads::Causal => None,
        Reads::Plain => Some(OwnLab::start(on, GALERA).await?),
    };
    let on = &plain.as_ref().unwrap_or(&causal).cluster;
    // Many products commit at once, so that nodes fall behind.
    let sells = async |on: &Cluster, strategy| {
        const PRODUCTS: usize = 10;
        let all = (0..PRODUCTS).map(|_| Buyers::new(on, strategy, "&hold_ms=5&wait_ms=60000"));
        let all = try_join_all(all).await?;
        let sold = try_join_all(all.iter().map(|buyers| buyers.buy_at_all(on.instances(), [6, 20]))).await?;
        for buyers in all {
            buyers.remove().await?;
        }
        let is_exact = sold.iter().all(|sold| sold.is_exact());
        let all = sold.into_iter().fold(SaleCounts::default(), SaleCounts::and);
        Ok::<_, NoVerdict>((all, is_exact))
    };
    let mut old = SaleCounts::default();
    for _ in 0..ROUNDS {
        let (round, _) = sells(on, "redis-lock").await?;
        old = SaleCounts { per_sec: round.per_sec, ..old.and(round) };
        if old.oversold() > 0 {
            break;
        }
    }
    let (fenced, by_fence) = sells(on, "redis-fenced").await?;
    let (fresh, by_reads) = sells(&causal.cluster, "redis-lock").await?;
    for lab in plain.into_iter().chain([causal]) {
        lab.stop().await?;
    }
    let each = [
        Words::new("三个节点各有一个实例在写：", "An instance writes to each of three nodes: "),
        old.words("redis-lock"),
        fenced.words(" redis-fenced"),
        fresh.words(" mysql.causal_reads redis-lock"),
    ];
    let all_kept = |sold: SaleCounts| sold.kept == sold.sold;
    let holds = old.oversold() > 0 && all_kept(old) && by_fence && by_reads && all_kept(fresh);
    Ok(Observation::holds(holds, Words::join(&each, ["", ""]))
        .value("redis_lock", json!(old))
        .value("redis_fenced", json!(fenced))
        .value("causal_reads", json!(fresh)))
}

/// Claim: one row sells faster if one node writes it than if three do; with a row per node nothing is refused.
pub(super) async fn compare_one_and_three_writers(on: &Cluster, writers: usize) -> Result<Observation, NoVerdict> {
    /// The number of rounds over which rates are compared.
    const ROUNDS: usize = 5;
    let load = [12, 25];
    let lab = OwnLab::start(on, GALERA).await?;
    let on = &lab.cluster;
    let all = on.instances();
    let new = || Buyers::new(on, "single-update", "");
    let (shared, own) = (new().await?, try_join_all(all.iter().map(|_| new())).await?);
    let [mut one, mut three, mut apart] = [(); 3].map(|()| Vec::new());
    for _ in 0..ROUNDS {
        one.push(shared.buy_at_all(&all[..1], load).await?);
        three.push(shared.buy_at_all(&all[..writers], load).await?);
        let each = own.iter().zip(all.chunks(1));
        apart.extend(try_join_all(each.map(|(own, at)| own.buy_at_all(at, [load[0] / all.len(), load[1]]))).await?);
    }
    lab.stop().await?;
    let rates = |of: &[SaleCounts]| of.iter().map(|sold| sold.per_sec).collect::<Vec<_>>();
    let refused = |of: &[SaleCounts]| of.iter().map(|sold| sold.refused).sum::<i64>();
    let is_exact = [&one, &three, &apart].into_iter().flatten().all(|sold| sold.is_exact());
    let ratio = Spread::from_ratios(&rates(&one), &rates(&three));
    let [by_one, by_three, by_each] = [&one, &three, &apart].map(|of| refused(of));
    let [one, three] = [&one, &three].map(|of| Spread::from_values(rates(of)).median);
    let (told, sent) = (explain_ratio(RatioClaim::Faster, ratio, 0), ROUNDS * load[0] * load[1]);
    let Words { zh, en } = told;
    let words = words!(
        "同一行，各 {sent} 个请求：一个节点写，每秒 {one:.0} 件，拒绝 {by_one} 个；三个节点写，每秒 {three:.0} 件，拒绝 {by_three} 个：{zh}每个节点写自己的一行：拒绝 {by_each} 个。",
        "One row, {sent} requests each: one node writes {one:.0}/s and refuses {by_one}; three write {three:.0}/s and refuse {by_three}: {en} With a row for each node {by_each} are refused."
    );
    let holds = is_exact && by_three > 0 && [by_one, by_each] == [0, 0];
    Ok(Observation::holds(holds, words)
        .require_ratio(RatioClaim::Faster, ratio)
        .value("ratio", json!(ratio))
        .value("refused", json!([by_one, by_three, by_each])))
}
