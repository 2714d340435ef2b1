//! `oversell doctor`: whether the database of the service is what the strategies assume. It only reads, and where no database
//! answers there is nothing to say of it.

use oversell::{
    config::Config,
    ctx::Ctx,
    stock::{
        self,
        assumptions::{other_settings, unfit_tables},
    },
};
use oversell_lab::terminal::{
    chinese::localized,
    failure::{Failure, unusable, unusable_localized},
    stdout::say,
};
use std::time::Duration;

/// The longest wait for a free connection; that for a new one comes on top.
const CONNECTION_WAIT: Duration = Duration::from_secs(1);

/// Prints whether the tables and sessions of `mysql.url` are what the strategies assume, and fails with those that cannot keep
/// their promise there.
pub(super) async fn check() -> Result<(), Failure> {
    let config = Config::load(&[]).map_err(|error| unusable!("{error}"))?;
    let ctx = Ctx::new(config).map_err(|error| unusable!("{error}"))?;
    say!("{}", localized!("服务的数据库（mysql.url）", "the service's database (mysql.url)"));
    let read = async {
        let mut conn = ctx.admin_conn(CONNECTION_WAIT).await.ok()?;
        let read = (other_settings(&mut conn).await.ok()?, unfit_tables(&mut conn).await.ok()?);
        conn.done();
        Some(read)
    };
    let Some((settings, unfit)) = read.await else {
        say!("{}", localized!("  没有     连不上，没什么可检查的", "  without  it cannot be reached: nothing to check"));
        return Ok(());
    };
    let mut broken = Vec::new();
    for table in &unfit {
        let on_it = stock::ALL.iter().filter(|strategy| strategy.rests_on(table)).map(|strategy| strategy.slug);
        let on_it = on_it.collect::<Vec<_>>().join(", ");
        broken.push(localized!(
            "{} 的引擎 {} 没有事务，{on_it} 在上面做不到所承诺的：ALTER TABLE {} ENGINE = InnoDB",
            "{} has engine {}, without transactions, so {on_it} cannot keep their promise: ALTER TABLE {} ENGINE = InnoDB",
            table.table,
            table.engine,
            table.table
        ));
    }
    broken.extend(settings);
    if !broken.is_empty() {
        return Err(unusable_localized!("服务的数据库不合要求：{}", "the service's database is unfit: {}", broken.join("; ")));
    }
    say!("{}", localized!("  ok       表和会话设置都合要求", "  ok       its tables and the settings of sessions"));
    Ok(())
}
