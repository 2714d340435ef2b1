//! Helpers of several experiments: commands of Redis, and a sale in words.

use crate::trials::{NoVerdict, cluster::target_name};
use oversell::{
    claims::{Target, Words, words},
    load::Row,
};
use oversell_lab::terminal::bilingual::Bilingual;
use redis::{FromRedisValue, aio::MultiplexedConnection};

/// A new key that no other experiment uses.
pub(super) fn own_key(name: &str) -> String {
    format!("course:{:08x}:{name}", fastrand::u32(..))
}

/// Sends one command, as `redis-cli` would.
pub(super) async fn send_command<T: FromRedisValue>(redis: &mut MultiplexedConnection, line: &[&str]) -> Result<T, NoVerdict> {
    let mut command = redis::Cmd::new();
    Ok(command.arg(line).query_async(redis).await?)
}

/// Describes a load: `mutex，三个实例：卖出 5000 件，库存减少 4321 件，超卖 679 件。`
pub(super) fn describe_sale(row: &Row) -> Words {
    let (sold, gone, over) = (row.counts.sold, row.pieces_gone(), row.oversold);
    let Bilingual { zh, en } = if row.target == target_name(Target::One) { Target::One } else { Target::Three }.words();
    let errors = row.counts.failed();
    let (mut more_zh, mut more_en) = (format!("超卖 {over} 件"), format!("{over} oversold"));
    if errors > 0 {
        more_zh += &format!("，{errors} 个请求出错");
        more_en += &format!(", {errors} requests failed");
    }
    words!(
        "{}，{zh}：卖出 {sold} 件，库存减少 {gone} 件，{more_zh}。",
        "{} on {en}: {sold} sold, {gone} gone, {more_en}.",
        row.strategy
    )
}

pub(super) fn describe_sales(rows: &[Row]) -> Words {
    let each: Vec<_> = rows.iter().map(describe_sale).collect();
    Words::join(&each, ["", " "])
}
