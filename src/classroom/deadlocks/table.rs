//! The table of one play: a hundred products, numbers 10, 20, … 1000, so that there are gaps between them.
//!
//! 1. Each play makes a table of its own and drops it at the end.
//! 2. What a killed instance has left is dropped by the next play that finds it, ten minutes later.

use crate::{ctx::Ctx, error::Error};
use sqlx::{Executor, MySqlConnection};
use std::fmt::Write;
use tokio::runtime::Handle;

const LEFT_OVER: &str = "SELECT CAST(TABLE_NAME AS CHAR) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
                         AND TABLE_NAME LIKE 'deadlock\\_%' AND CREATE_TIME < NOW() - INTERVAL 10 MINUTE";

/// One that is there. Where it is let go of without [`remove`](Self::remove), it is dropped in the background.
pub(super) struct Table {
    ctx: Ctx,
    /// A name that no other play has.
    pub(super) name: String,
    is_there: bool,
}

impl Table {
    pub(super) async fn make(ctx: &Ctx, conn: &mut MySqlConnection) -> Result<Self, Error> {
        let table = Self {
            ctx: ctx.clone(),
            name: format!("deadlock_{:08x}", fastrand::u32(..)),
            is_there: true,
        };
        make(conn, &table.name).await?;
        Ok(table)
    }

    pub(super) async fn remove(mut self, conn: &mut MySqlConnection) -> Result<(), Error> {
        drop(conn, &self.name).await?;
        self.is_there = false;
        Ok(())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let Some(handle) = Handle::try_current().ok().filter(|_| self.is_there) else {
            return;
        };
        let (ctx, name) = (self.ctx.clone(), std::mem::take(&mut self.name));
        let tasks = ctx.tasks.clone();
        let dropped = async move {
            let mut conn = ctx.mysql(ctx.config.wait()).await?;
            drop(&mut conn, &name).await?;
            conn.done();
            Ok::<_, Error>(())
        };
        tasks.spawn_on(
            async {
                dropped.await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "the table of a play is left");
                });
            },
            &handle,
        );
    }
}

async fn make(conn: &mut MySqlConnection, name: &str) -> Result<(), Error> {
    let left_over: Vec<String> = sqlx::query_scalar(LEFT_OVER).fetch_all(&mut *conn).await?;
    for table in left_over {
        drop(conn, &table).await?;
    }
    let create = format!(
        "CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY, code VARCHAR(16) NOT NULL, count INT NOT NULL) ENGINE = InnoDB"
    );
    conn.execute(create.as_str()).await?;
    let mut fill = format!("INSERT INTO {name} VALUES ");
    for id in (10..=1000).step_by(10) {
        write!(
            fill,
            "{}({id}, 'P{id}', 100)",
            if id == 10 { "" } else { ", " }
        )
        .ok();
    }
    conn.execute(fill.as_str()).await?;
    Ok(())
}

async fn drop(conn: &mut MySqlConnection, name: &str) -> Result<(), Error> {
    conn.execute(format!("DROP TABLE IF EXISTS {name}").as_str())
        .await?;
    Ok(())
}
