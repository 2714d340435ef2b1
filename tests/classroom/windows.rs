//! The lessons for several browser windows, on three instances behind nginx: what their visitors leave. What they show is
//! tried by the races (`replay/races.rs`) and by the course.

use crate::support::{
    http::{answer, ask, body_with_status, client, put_stock_of},
    labs::{self, child_nodes, command_redis},
    *,
};
use oversell_lab::lab::Lab;
use reqwest::StatusCode;

/// Where a server shows that visitors are inside.
#[derive(Clone, Copy)]
enum Shown {
    Keys(&'static str),
    /// So many of three permits are taken.
    Permits(&'static str),
    Nodes(&'static str),
}

impl Shown {
    async fn count(self, lab: &Lab) -> Result<usize> {
        match self {
            Self::Keys(pattern) => Ok(command_redis::<Vec<String>>(lab, &["KEYS", pattern]).await?.len()),
            Self::Permits(key) => Ok(3 - command_redis::<Option<usize>>(lab, &["GET", key]).await?.unwrap_or(3)),
            Self::Nodes(path) => Ok(child_nodes(&lab.addresses().zookeeper.connect, path).await?.len()),
        }
    }
}

/// The visitors that fill a lesson, and what the server has of them.
const FULL: [(&str, usize, Shown, usize); 12] = [
    ("/test/semaphore?", 3, Shown::Permits("semaphore"), 3),
    ("/test/reentrant?", 1, Shown::Keys("reentrantLock"), 1),
    ("/test/multi?", 1, Shown::Keys("lock?"), 3),
    ("/test/fair?", 1, Shown::Keys("fairLock"), 1),
    ("/test/zk/semaphore?", 5, Shown::Nodes("/locks/semaphore/leases"), 5),
    ("/test/zk/multi?", 1, Shown::Nodes("/curator/multi/3"), 1),
    ("/test/zk/reentrant?", 1, Shown::Nodes("/curator/reentrant"), 1),
    ("/test/zk/herd?waiters=100&", 1, Shown::Nodes("/distributed/zk-herd"), 1),
    ("/demo1?", 1, Shown::Keys("demo1LockKey"), 1),
    ("/demo2?", 1, Shown::Keys("demo2LockKey"), 1),
    ("/demo3?", 1, Shown::Keys("GET /demo3"), 1),
    ("/demo4?whId=1&sku=a_%E5%BA%97&", 1, Shown::Keys("demo4#1_a%5F%E5%BA%97"), 1),
];

/// Visitors enter and stay; another one is refused; when they hang up, all is given back.
#[apply(test!)]
async fn a_visitor_that_hangs_up_leaves_nothing_inside() -> Result<()> {
    let lab = labs::full_lab().await?;
    for (lesson, visitors, shown, all) in FULL {
        let url = format!("{}{lesson}", lab.addresses().http);
        let is_herd = lesson.contains("herd");
        let stays = if is_herd { url.trim_end_matches('&').to_owned() } else { format!("{url}hold_ms=60000") };
        let inside: Vec<_> = (0..visitors).map(|_| tokio::spawn(ask(stays.clone()))).collect();
        wait_until(&format!("{lesson} is full"), || async { Ok(shown.count(&lab).await? == all) }).await?;
        if !is_herd {
            let one_more = format!("{url}hold_ms=0&wait_ms=200");
            body_with_status(one_more, StatusCode::SERVICE_UNAVAILABLE).await.context("one more")?;
        }
        inside.iter().for_each(tokio::task::JoinHandle::abort);
        wait_until(&format!("{lesson} is empty"), || async { Ok(shown.count(&lab).await? == 0) }).await?;
    }
    // A reset clears what visitors have counted.
    put_stock_of(&lab.addresses().http, 1, 1).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// A client that names another product in each request does not fill Redis: every key without a lease ends by itself.
#[apply(test!)]
async fn a_visit_leaves_no_key_that_never_ends() -> Result<()> {
    let lab = labs::full_lab().await?;
    let http = &lab.addresses().http;
    put_stock_of(http, 100_000, 1).await?;
    // One class of six leaves, and the next begins.
    let out = std::iter::repeat_n("countdown", 7);
    for lesson in out.chain(["semaphore", "fair"]) {
        ask(format!("{http}/test/{lesson}?stock_id=100000&hold_ms=0")).await?;
    }
    let left: Vec<String> = command_redis(&lab, &["KEYS", "*:100000*"]).await?;
    let mut for_ever = Vec::new();
    for key in left.iter().filter(|key| *key != "stock:100000") {
        if command_redis::<i64>(&lab, &["TTL", key]).await? < 0 {
            for_ever.push(key);
        }
    }
    ensure!(left.len() >= 6 && for_ever.is_empty(), "{left:?}: {for_ever:?}");
    let (removed, words) = answer(client().delete(format!("{http}/stock?stock_id=100000"))).await?;
    ensure!(removed.is_success(), "{removed} {words}");
    labs::keep_for_next_test(lab);
    Ok(())
}
