//! Three MariaDB nodes in one Galera cluster, with an instance on each. A node locks only its own rows and may read old ones;
//! at COMMIT a transaction is compared with those of the other nodes.

use crate::trials::{
    Cluster, NoVerdict, Observation, Product,
    observation::explain_ratio,
    own_lab::{shared_galera, start_galera_with_causal_reads},
    purchases::{STOCK, SaleCounts, outcome},
};
use futures::future::{join_all, try_join_all};
use oversell::claims::{RatioClaim, Words, words};
use oversell_lab::spread::Spread;
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::{Connection, Executor, MySqlConnection, mysql::MySqlDatabaseError};
use std::time::{Duration, Instant};
use tokio::time::timeout;

experiments! {
    "beyond.node-locks" => row_lock_stays_on_its_node(SecondConnection::ToAnotherNode), twin(SecondConnection::ToTheSameNode);
    "beyond.stale-read" => stale_read_oversells(Reads::Plain), twin(Reads::Causal);
    "beyond.lagging" => lagging_node_refuses_sales(SecondNode::Lags), twin(SecondNode::KeepsUp);
    "beyond.read-only" => read_only_node_refuses_plain_user(""), twin(", READ ONLY ADMIN");
    "beyond.writers" => compare_one_and_three_writers(3), twin(1);
    "beyond.snapshots" => snapshot_isolation_loses_updates(SnapshotIsolation::Off), twin(SnapshotIsolation::On);
}

/// Where the second of two connections goes.
#[derive(Debug, Clone, Copy)]
enum SecondConnection {
    ToAnotherNode,
    ToTheSameNode,
}

/// Whether the second node applies what others commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecondNode {
    KeepsUp,
    Lags,
}

/// The setting `innodb_snapshot_isolation`, as SQL names it.
#[derive(Debug, Clone, Copy)]
enum SnapshotIsolation {
    Off,
    On,
}

/// The numbers of the errors after which a transaction is rolled back: deadlock, and a row that has changed since it was read.
const ROLLBACK_ERRORS: [u16; 2] = [1213, 1020];

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

/// Spreads the buyers over these instances. Each buys `each` times, one piece after the other.
async fn buy_at_all(
    product: &Product<'_>,
    at: &[String],
    [buyers, each]: [usize; 2],
    (strategy, more): (&str, &str),
) -> Result<SaleCounts, NoVerdict> {
    let before = product.remaining().await?.mysql;
    let begun = Instant::now();
    let buyers = at.iter().cycle().take(buyers).map(|at| async move {
        let mut counts = SaleCounts::default();
        for _ in 0..each {
            let answer = product.buy(at, strategy, more).await;
            counts.count(&outcome(&answer));
            let is_kept = |(status, answer): (_, Value)| status == 200 && answer["lock"] == "kept";
            counts.kept += i64::from(answer.is_ok_and(is_kept));
        }
        counts
    });
    let buyers = join_all(buyers).await.into_iter();
    let mut all = buyers.fold(SaleCounts::default(), SaleCounts::and);
    all.per_sec = all.sold as f64 / begun.elapsed().as_secs_f64();
    all.gone = before - product.remaining().await?.mysql;
    Ok(all)
}

/// The reads of a strategy: of what the node has, or of all that is committed.
#[derive(Debug, Clone, Copy)]
enum Reads {
    Plain,
    /// `mysql.causal_reads` is on.
    Causal,
}

/// Claim: a lock that is never lost does not help against a stale read; a fence does, and so do reads that wait for all commits.
async fn stale_read_oversells(on: &Cluster, reads: Reads) -> Result<Observation, NoVerdict> {
    /// The number of rounds: more than one, because a stale read does not happen in every round.
    const ROUNDS: usize = 5;
    let causal = start_galera_with_causal_reads(on).await?;
    let plain = match reads {
        Reads::Causal => &causal.cluster,
        Reads::Plain => shared_galera(on).await?,
    };
    // Many products commit at once, so that nodes fall behind.
    let sells = async |on: &Cluster, strategy| {
        const PRODUCTS: usize = 10;
        let products = try_join_all((0..PRODUCTS).map(|_| on.create_product_on_each_node(STOCK))).await?;
        let terms = (strategy, "&hold_ms=5&wait_ms=60000");
        let each = products.iter();
        let each = each.map(|product| buy_at_all(product, on.instances(), [6, 20], terms));
        let sold = try_join_all(each).await?;
        for product in products {
            product.remove().await?;
        }
        let is_exact = sold.iter().all(|sold| sold.is_exact());
        let all = sold.into_iter().fold(SaleCounts::default(), SaleCounts::and);
        Ok::<_, NoVerdict>((all, is_exact))
    };
    let mut old = SaleCounts::default();
    for _ in 0..ROUNDS {
        let (round, _) = sells(plain, "redis-lock").await?;
        old = SaleCounts { per_sec: round.per_sec, ..old.and(round) };
        if old.oversold() > 0 {
            break;
        }
    }
    let (fenced, by_fence) = sells(plain, "redis-fenced").await?;
    let (fresh, by_reads) = sells(&causal.cluster, "redis-lock").await?;
    causal.stop().await?;
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

/// Claim: row locks and named locks do not reach another node. `second_node` is the index of the second connection's node.
async fn row_lock_stays_on_its_node(on: &Cluster, second: SecondConnection) -> Result<Observation, NoVerdict> {
    const LOCK: &str = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ? FOR UPDATE";
    const TAKE: &str = "UPDATE db_stock SET count = count - 1 WHERE id = ?";
    let on = shared_galera(on).await?;
    let product = on.create_product_on_each_node(STOCK).await?;
    let nodes: Vec<_> = on.servers()?.mysql_nodes().collect();
    let other = match second {
        SecondConnection::ToAnotherNode => nodes[1],
        SecondConnection::ToTheSameNode => nodes[0],
    };
    let mut one = MySqlConnection::connect(&nodes[0].url).await?;
    let mut two = MySqlConnection::connect(&other.url).await?;
    for node in [&mut one, &mut two] {
        node.execute("SET SESSION innodb_lock_wait_timeout = 2; START TRANSACTION").await?;
    }
    let locks = |node| {
        let lock = sqlx::query_scalar::<_, i64>(LOCK).bind(product.id);
        async move { error_number(lock.fetch_one(node).await) }
    };
    let takes = |node| {
        let take = sqlx::query(TAKE).bind(product.id);
        async move { error_number(take.execute(node).await) }
    };
    let first = locks(&mut one).await?;
    let begun = Instant::now();
    let second = locks(&mut two).await?;
    let waited_ms = begun.elapsed().as_millis();
    let both_take = [takes(&mut one).await?, takes(&mut two).await?];
    let ends = [error_number(one.execute("COMMIT").await)?, error_number(two.execute("COMMIT").await)?];
    let mut named = Vec::new();
    for node in [&mut one, &mut two] {
        let lock = sqlx::query_scalar::<_, Option<i64>>("SELECT GET_LOCK(?, 0)");
        let name = format!("course-{}", product.id);
        named.push(lock.bind(name).fetch_one(node).await?);
    }
    let gone = STOCK - product.remaining().await?.mysql;
    product.remove().await?;
    let (second_shown, one_ends, two_ends) = (describe_error(second), describe_error(ends[0]), describe_error(ends[1]));
    let named_shown: Vec<_> = named.iter().map(|had| had.unwrap_or(-1).to_string()).collect();
    let named_shown = named_shown.join(", ");
    let words = words!(
        "一个节点上 FOR UPDATE 锁住了这一行，另一个节点的 FOR UPDATE：{second_shown}，用了 {waited_ms} ms；两边都减 1，COMMIT 先是 {one_ends}，后是 {two_ends}，库存减少 {gone} 件。GET_LOCK 在两个节点上：{named_shown}。",
        "With the row locked on one node, FOR UPDATE on another one: {second_shown}, after {waited_ms} ms; both take 1, the first COMMIT: {one_ends}, the second: {two_ends}, {gone} gone. GET_LOCK on the two: {named_shown}."
    );
    let holds = [first, second] == [None, None]
        && both_take == [None, None]
        && ends == [None, Some(1213)]
        && gone == 1
        && named == [Some(1), Some(1)];
    Ok(Observation::holds(holds, words)
        .value("waited_ms", u64::try_from(waited_ms).unwrap_or(u64::MAX))
        .value("commits", json!(ends))
        .value("get_lock", json!(named)))
}

/// The error number as text, `OK` if there was no error.
fn describe_error(error: Option<u16>) -> String {
    error.map_or("OK".to_owned(), |error| error.to_string())
}

/// The number of the error that the server answered; `None` if it succeeded. Any other error fails.
fn error_number<T>(done: sqlx::Result<T>) -> Result<Option<u16>, NoVerdict> {
    match done {
        Ok(_) => Ok(None),
        Err(sqlx::Error::Database(error)) => Ok(Some(error.downcast_ref::<MySqlDatabaseError>().number())),
        Err(error) => Err(error.into()),
    }
}

/// Claim: a node that applies no changes reads an old count, refuses sales, and serves no read that waits for all commits.
async fn lagging_node_refuses_sales(on: &Cluster, second: SecondNode) -> Result<Observation, NoVerdict> {
    /// Time limit of a read that waits for all commits: it would return within milliseconds on a node that is up to date.
    const CAUSAL_READ_TIMEOUT: Duration = Duration::from_secs(1);
    let on = shared_galera(on).await?;
    let product = on.create_product_on_each_node(STOCK).await?;
    let [one, two, ..] = on.instances() else {
        return Err(NoVerdict::unavailable("要有两个实例", "it takes two instances"));
    };
    let node = on.servers()?.mysql_nodes().nth(1).map(|node| &node.url);
    let node = node.ok_or_else(|| NoVerdict::failed("no second node"))?;
    let read = async |waits: u8| {
        let mut node = MySqlConnection::connect(node).await?;
        let waits = format!("SET SESSION wsrep_sync_wait = {waits}");
        node.execute(waits.as_str()).await?;
        let read = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ?";
        let read = sqlx::query_scalar::<_, i64>(read).bind(product.id);
        Ok::<_, NoVerdict>(read.fetch_one(&mut node).await?)
    };
    let mut locker = MySqlConnection::connect(node).await?;
    if second == SecondNode::Lags {
        locker.execute("FLUSH TABLES WITH READ LOCK").await?;
    }
    let sold = product.buy(one, "single-update", "").await?.0;
    let plain = read(0).await?;
    let causal = match timeout(CAUSAL_READ_TIMEOUT, read(1)).await {
        Ok(read) => Some(read?),
        Err(_) => None,
    };
    let refused = product.buy(two, "single-update", "&wait_ms=1000").await?.0;
    locker.execute("UNLOCK TABLES").await?;
    let fresh = read(1).await?;
    let gone = STOCK - product.remaining().await?.mysql;
    product.remove().await?;
    let (old, missed) = (STOCK - plain, STOCK - fresh);
    let waited = causal.map_or_else(|| "-".to_owned(), |read| (STOCK - read).to_string());
    let words = words!(
        "一个节点暂时什么也不应用，别的节点上卖了一件（{sold}）：在它上面读，库存减少 {old} 件；先等一等的读（wsrep_sync_wait）1 s 内：{waited}；在它上面卖：{refused}。它跟上以后读到库存减少 {missed} 件，库存一共减少 {gone} 件。",
        "A node applies nothing for a while, and a piece is sold on another one ({sold}). Read there, {old} are gone; by a read that waits (wsrep_sync_wait) within 1 s: {waited}; a sale there: {refused}. Once it has caught up, {missed} are gone when read there; in all {gone} are gone."
    );
    let holds = [sold, refused] == [200, 503] && old == 0 && causal.is_none() && missed == 1 && gone == 1;
    Ok(Observation::holds(holds, words).value("status", json!([sold, refused])).value("gone", gone))
}

/// Claim: a read-only node refuses the writes of a plain user, and not those of root. `rights` are added to the user's.
async fn read_only_node_refuses_plain_user(on: &Cluster, rights: &str) -> Result<Observation, NoVerdict> {
    /// The ordinary user, as SQL names an account; it is dropped at the end.
    const SHOP: &str = "shop@'127.0.0.1'";
    let on = shared_galera(on).await?;
    let product = on.create_product_on_each_node(STOCK).await?;
    let node = on.servers()?.mysql_nodes().nth(1).map(|node| &node.url);
    let node = node.ok_or_else(|| NoVerdict::failed("no second node"))?;
    let mut root = MySqlConnection::connect(node).await?;
    for order in [
        format!("CREATE OR REPLACE USER {SHOP}"),
        format!("GRANT SELECT, UPDATE{rights} ON *.* TO {SHOP}"),
        "SET GLOBAL read_only = ON".to_owned(),
    ] {
        root.execute(order.as_str()).await?;
    }
    let mut shop = MySqlConnection::connect(&node.replace("root@", "shop@")).await?;
    let read = sqlx::query("SELECT count FROM db_stock WHERE id = ?").bind(product.id);
    let read = error_number(read.fetch_one(&mut shop).await)?;
    let takes = |user| {
        let take = "UPDATE db_stock SET count = count - 1 WHERE id = ?";
        let take = sqlx::query(take).bind(product.id);
        async move { error_number(take.execute(user).await) }
    };
    let [by_shop, by_root] = [takes(&mut shop).await?, takes(&mut root).await?];
    for order in ["SET GLOBAL read_only = OFF".to_owned(), format!("DROP USER {SHOP}")] {
        root.execute(order.as_str()).await?;
    }
    let gone = STOCK - product.remaining().await?.mysql;
    product.remove().await?;
    let [reads, writes, root_writes] = [read, by_shop, by_root].map(describe_error);
    let words = words!(
        "节点只读（read_only=ON）。普通用户：SELECT {reads}，UPDATE {writes}；root：UPDATE {root_writes}。库存一共减少 {gone} 件。",
        "The node is read only (read_only=ON). A user of the shop: SELECT {reads}, UPDATE {writes}; root: UPDATE {root_writes}. In all {gone} are gone."
    );
    let holds = [read, by_shop, by_root] == [None, Some(1290), None] && gone == 1;
    Ok(Observation::holds(holds, words).value("errors", json!([read, by_shop, by_root])))
}

/// Claim: one row sells faster if one node writes it than if three do; with a row per node nothing is refused.
async fn compare_one_and_three_writers(on: &Cluster, writers: usize) -> Result<Observation, NoVerdict> {
    /// The number of rounds over which rates are compared.
    const ROUNDS: usize = 5;
    let (buyers, terms) = ([12, 25], ("single-update", ""));
    let on = shared_galera(on).await?;
    let all = on.instances();
    let several = &all[..writers];
    let shared = on.create_product_on_each_node(STOCK).await?;
    let own = try_join_all(all.iter().map(|_| on.create_product_on_each_node(STOCK))).await?;
    let [mut one, mut three, mut apart] = [(); 3].map(|()| Vec::new());
    for _ in 0..ROUNDS {
        one.push(buy_at_all(&shared, &all[..1], buyers, terms).await?);
        three.push(buy_at_all(&shared, several, buyers, terms).await?);
        let each = (own.iter().zip(all.chunks(1)))
            .map(|(own, at)| buy_at_all(own, at, [buyers[0] / all.len(), buyers[1]], terms));
        apart.extend(try_join_all(each).await?);
    }
    for product in own.into_iter().chain([shared]) {
        product.remove().await?;
    }
    let rates = |of: &[SaleCounts]| of.iter().map(|sold| sold.per_sec).collect::<Vec<_>>();
    let refused = |of: &[SaleCounts]| of.iter().map(|sold| sold.refused).sum::<i64>();
    let is_exact = [&one, &three, &apart].into_iter().flatten().all(|sold| sold.is_exact());
    let ratio = Spread::from_ratios(&rates(&one), &rates(&three));
    let [by_one, by_three, by_each] = [&one, &three, &apart].map(|of| refused(of));
    let [one, three] = [&one, &three].map(|of| Spread::from_values(rates(of)).median);
    let (told, sent) = (explain_ratio(RatioClaim::Faster, ratio, 0), ROUNDS * buyers[0] * buyers[1]);
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

/// Claim: transactions on all nodes that read the count and write one less lose updates with `innodb_snapshot_isolation` off, and
/// none with it on. `tested` is the setting that loses updates.
async fn snapshot_isolation_loses_updates(on: &Cluster, tested: SnapshotIsolation) -> Result<Observation, NoVerdict> {
    let on = shared_galera(on).await?;
    let off = run_read_then_write(on, tested).await?;
    let strict = run_read_then_write(on, SnapshotIsolation::On).await?;
    let words = words!(
        "三个节点上的事务都先读后写：innodb_snapshot_isolation=OFF，提交 {} 次，丢了 {} 次更新；ON，提交 {} 次，丢了 {} 次，回滚 {} 次。",
        "Transactions read and then write on three nodes: with innodb_snapshot_isolation=OFF {} commits, {} updates lost; with ON {} commits, {} lost, {} rolled back.",
        off.committed,
        off.lost,
        strict.committed,
        strict.lost,
        strict.rolled_back
    );
    let holds = off.lost > 0 && strict.committed > 0 && strict.lost == 0 && strict.rolled_back > 0;
    Ok(Observation::holds(holds, words).value("off", json!(off)).value("on", json!(strict)))
}

/// How the transactions of all clients ended.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct CommitCounts {
    committed: i64,
    rolled_back: i64,
    /// The committed ones whose piece is still in stock: another's write took its place. Known for all clients together only.
    lost: i64,
}

/// Has clients on all nodes read the count and write one less for some seconds, with this `innodb_snapshot_isolation`;
/// unavailable if the server has no such setting.
async fn run_read_then_write(on: &Cluster, snapshot_isolation: SnapshotIsolation) -> Result<CommitCounts, NoVerdict> {
    /// The number of connections, spread over the nodes.
    const CLIENTS: usize = 6;
    /// How long each connection commits.
    const LOAD_DURATION: Duration = Duration::from_secs(3);
    let product = on.create_product_on_each_node(STOCK).await?;
    let id = product.id;
    let nodes: Vec<_> = on.servers()?.mysql_nodes().collect();
    let clients = nodes.iter().cycle().take(CLIENTS).map(|node| async move {
        let mut node = MySqlConnection::connect(&node.url).await?;
        let isolation = format!("SET SESSION innodb_snapshot_isolation = {snapshot_isolation:?}");
        if let Some(error) = error_number(node.execute(isolation.as_str()).await)? {
            return Err(NoVerdict::unavailable(
                format!(
                    "这个版本的 MariaDB 没有 innodb_snapshot_isolation（错误 {error}）：要 10.6.18、10.11.8 或更新"
                ),
                format!(
                    "this MariaDB has no innodb_snapshot_isolation (error {error}): it takes 10.6.18, 10.11.8 or newer"
                ),
            ));
        }
        let (begun, mut done) = (Instant::now(), CommitCounts::default());
        while begun.elapsed() < LOAD_DURATION {
            let committed = async {
                let mut work = node.begin().await?;
                let read = "SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = ?";
                let read = sqlx::query_scalar::<_, i64>(read).bind(id);
                let count = read.fetch_one(&mut *work).await?;
                let write = sqlx::query("UPDATE db_stock SET count = ? WHERE id = ?");
                write.bind(count - 1).bind(id).execute(&mut *work).await?;
                work.commit().await
            };
            match error_number(committed.await)? {
                None => done.committed += 1,
                Some(error) if ROLLBACK_ERRORS.contains(&error) => done.rolled_back += 1,
                Some(error) => return Err(NoVerdict::failed(format!("MySQL: error {error}"))),
            }
        }
        node.close().await?;
        Ok(done)
    });
    let mut all = CommitCounts::default();
    for done in try_join_all(clients).await? {
        all.committed += done.committed;
        all.rolled_back += done.rolled_back;
    }
    all.lost = all.committed - (STOCK - product.remaining().await?.mysql);
    product.remove().await?;
    Ok(all)
}
