//! §1.3 Check, then write: the oversell itself.
//!
//! 1. Read how many pieces there are, on a connection out of the pool, which goes back.
//! 2. Write back one less, on another one.
//!
//! What it survives: one request at a time. **What breaks it**: two requests that read the same number; both
//! write the same number less one, two pieces are sold and one leaves the shelf.
//!
//! Next: `mutex.rs`, the cure inside one process.

use super::{Deducted, Job, Promise, Server, Store, Strategy, mysql};
use crate::bilingual::Bilingual;
use crate::{ctx::Ctx, error::Error};

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "none",
    chapter: "1.3",
    store: Store::MySql,
    promise: Promise::Unsafe,
    needs: &[Server::MySql],
    beyond: false,
    pace: 4_700,
    names: &[],
    title: Bilingual {
        zh: "查了再改：两个人同时看到 5000，都写回 4999",
        en: "Check, then write: two read 5000, both write 4999",
    },
    breaks: Bilingual {
        zh: "读与写之间",
        en: "between the read and the write",
    },
    source: include_str!("none.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    mysql::read_then_write(ctx, job, None).await
}
