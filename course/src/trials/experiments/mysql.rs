//! §1.7.3: a case in which the optimistic lock is slower.

use crate::trials::{Cluster, NoVerdict, Observation, twin::EXACT};
use oversell::claims::{Target, words};
use sqlx::{Connection, Executor, MySqlConnection, Row};

experiments! {
    "1.7.3.stale" => most_failed_updates_were_stale_when_sent("version-cas"), twin(EXACT);
}

/// The counters that are compared; the answer has them in the order of their names.
const SHOW_COUNTERS: &str = "SHOW GLOBAL STATUS WHERE variable_name IN ('Com_update', 'Innodb_row_lock_waits')";

/// Claim: of the UPDATEs of 100 threads that change nothing, most were stale before they were sent, because fewer have waited for
/// the row lock.
async fn most_failed_updates_were_stale_when_sent(on: &Cluster, strategy: &str) -> Result<Observation, NoVerdict> {
    let mut plan = on.course_load(strategy, Target::OneInstance);
    plan.loops = 20;
    let mut conn = on.mysql().await?;
    let before = read_counters(&mut conn).await?;
    let row = on.send_load(plan).await?;
    let after = read_counters(&mut conn).await?;
    conn.close().await?;
    let (updates, waits) = (after[0] - before[0], after[1] - before[1]);
    let in_vain = updates - row.pieces_gone();
    let words = words!(
        "卖出 {} 件，执行 UPDATE {updates} 次，影响 0 行的 {in_vain} 次，等行锁一共 {waits} 次。说的是一半以上影响 0 行，其中一半以上没等过行锁。",
        "{} sold by {updates} UPDATEs, {in_vain} of them in vain; {waits} waits for a row lock in all. More than half in vain is claimed, and more than half of these without a wait.",
        row.counts.sold
    );
    let seen = Observation::holds(most_failed_updates_did_not_wait(updates, in_vain, waits), words);
    Ok(seen.sales([&row]).value("updates", updates).value("row_lock_waits", waits))
}

/// Whether more than half of the UPDATEs changed nothing, and more than half of these did not wait, even if every wait was
/// theirs.
fn most_failed_updates_did_not_wait(updates: i64, in_vain: i64, waits: i64) -> bool {
    in_vain * 2 > updates && waits * 2 < in_vain
}

/// Reads how many UPDATEs and how many waits for a row lock there were since the server started.
async fn read_counters(conn: &mut MySqlConnection) -> Result<[i64; 2], NoVerdict> {
    let mut counts = Vec::new();
    for row in conn.fetch_all(SHOW_COUNTERS).await? {
        let count: String = row.try_get_unchecked(1)?;
        counts.extend(count.parse::<i64>());
    }
    let both = counts.try_into();
    both.map_err(|counts| NoVerdict::failed(format!("MySQL has counted {counts:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_tries_in_vain_have_not_waited() {
        for (updates, in_vain, waits, lost) in [
            (84_000, 82_000, 19_000, true),
            (84_000, 82_000, 41_000, false),
            (2_000, 0, 400, false),
            (2_000, 0, 0, false),
            (4_000, 2_000, 0, false),
            (0, 0, 0, false),
        ] {
            assert_eq!(most_failed_updates_did_not_wait(updates, in_vain, waits), lost, "{updates} {in_vain} {waits}");
        }
    }
}
