//! What the actors of a replay take: pieces of a product, or of a voucher; put on the shelf before, and removed after.

use super::act::Act;
use crate::{ctx::Ctx, error::Error, seckill::voucher, shelf};
use chrono::{TimeDelta, Utc};

/// So many pieces at first.
pub(super) const INITIAL_PIECES: i64 = 5000;

/// Puts the pieces there, and gives the number by which the actors call them.
pub(super) async fn put(ctx: &Ctx, act: Act, pieces: i64) -> Result<i64, Error> {
    if matches!(act, Act::Order(_)) {
        let id = put_voucher_on_sale(ctx, pieces).await?;
        if id > 1 {
            return Ok(id);
        }
        // The first of all, whose number stands in no name.
        let another = put_voucher_on_sale(ctx, pieces).await;
        voucher::remove(ctx, id).await?;
        return another;
    }
    let stock_id = fastrand::i64(1_000_000_000..2_000_000_000);
    shelf::reset(ctx, stock_id, pieces, Some(act.scope())).await?;
    Ok(stock_id)
}

/// A voucher on sale.
pub(super) async fn put_voucher_on_sale(ctx: &Ctx, pieces: i64) -> Result<i64, Error> {
    let (begin, end) = (
        Utc::now() - TimeDelta::hours(1),
        Utc::now() + TimeDelta::hours(1),
    );
    voucher::add(ctx, "100元代金券", pieces, begin, end).await
}

/// How many pieces are left; none where the act takes none.
pub(super) async fn count_left(ctx: &Ctx, act: Act, id: i64) -> Result<Option<i64>, Error> {
    if matches!(act, Act::Order(_)) {
        return Ok(Some(voucher::read(ctx, id).await?.stock));
    }
    match act.scope().store {
        Some(store) => shelf::count(ctx, store, id).await.map(Some),
        None => Ok(None),
    }
}

/// Takes them away, and whatever the act has written in the servers.
pub(super) async fn remove(ctx: &Ctx, act: Act, id: i64) -> Result<(), Error> {
    if matches!(act, Act::Order(_)) {
        return voucher::remove(ctx, id).await;
    }
    shelf::remove(ctx, id, Some(act.scope())).await.map(drop)
}
