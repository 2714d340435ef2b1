//! The table of one play: a hundred products, numbers 10, 20, … 1000, so that there are gaps between them.
//!
//! 1. Each play makes a table of its own and drops it at the end.
//! 2. What a killed instance has left is dropped by the next play that finds it, ten minutes later. It is known by its comment:
//!    the database may have tables of others.

use crate::{ctx::Ctx, error::Error, section::backstop::Backstop};
use sqlx::{Executor, MySqlConnection};
use std::{fmt::Write, time::Duration};

/// The comment of every table of a play, by which abandoned ones are found.
const TABLE_COMMENT: &str = "oversell: the table of one play of a deadlock, dropped at its end";

/// The tables with this comment that are older than this many seconds.
const FIND_ABANDONED: &str = "SELECT CAST(TABLE_NAME AS CHAR) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
                         AND TABLE_NAME LIKE 'deadlock\\_%' AND TABLE_COMMENT = ? \
                         AND CREATE_TIME <= NOW() - INTERVAL ? SECOND";

/// No play lasts this long: an older table was left by a killed instance.
const MAX_PLAY_TIME: Duration = Duration::from_secs(600);

/// The table of one play. Dropping it without [`remove`](Self::remove) drops the table in the background.
pub(super) struct Table {
    /// A name that no other play has.
    pub(super) name: String,
    backstop: Backstop<()>,
}

impl Table {
    /// Creates a table of a new name and fills it, after dropping those that killed instances have left.
    pub(super) async fn make(ctx: &Ctx, conn: &mut MySqlConnection) -> Result<Self, Error> {
        let name = format!("deadlock_{:08x}", fastrand::u32(..));
        let backstop = Backstop::new(ctx, drop_in_background(ctx.clone(), name.clone()));
        create_table(conn, &name).await?;
        Ok(Self { name, backstop })
    }

    /// Drops the table now.
    pub(super) async fn remove(self, conn: &mut MySqlConnection) -> Result<(), Error> {
        drop_table(conn, &self.name).await?;
        self.backstop.cancel();
        Ok(())
    }
}

/// Drops the table of a play on a connection of its own; a failure is logged.
async fn drop_in_background(ctx: Ctx, name: String) {
    let dropped = async {
        let mut conn = ctx.mysql(ctx.config.default_wait()).await?;
        drop_table(&mut conn, &name).await?;
        conn.done();
        Ok::<_, Error>(())
    };
    if let Err(error) = dropped.await {
        tracing::warn!(%error, name, "the table of a play is left");
    }
}

/// Drops what killed instances have left, then creates this table and fills it.
async fn create_table(conn: &mut MySqlConnection, name: &str) -> Result<(), Error> {
    drop_abandoned_tables(conn, MAX_PLAY_TIME).await?;
    let create = format!(
        "CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY, code VARCHAR(16) NOT NULL, count INT NOT NULL) ENGINE = InnoDB \
         COMMENT = '{TABLE_COMMENT}'"
    );
    conn.execute(create.as_str()).await?;
    let mut fill = format!("INSERT INTO {name} VALUES ");
    for id in (10..=1000).step_by(10) {
        write!(fill, "{}({id}, 'P{id}', 100)", if id == 10 { "" } else { ", " }).ok();
    }
    conn.execute(fill.as_str()).await?;
    Ok(())
}

/// Drops tables older than `age` that killed instances have left.
/// Cancel safety: the next one drops the rest.
pub async fn drop_abandoned_tables(conn: &mut MySqlConnection, age: Duration) -> Result<(), Error> {
    let left_over = sqlx::query_scalar(FIND_ABANDONED).bind(TABLE_COMMENT).bind(age.as_secs());
    let left_over: Vec<String> = left_over.fetch_all(&mut *conn).await?;
    for table in left_over {
        drop_table(conn, &table).await?;
    }
    Ok(())
}

async fn drop_table(conn: &mut MySqlConnection, name: &str) -> Result<(), Error> {
    conn.execute(format!("DROP TABLE IF EXISTS {name}").as_str()).await?;
    Ok(())
}
