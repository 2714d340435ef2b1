mod faults;
mod ids;
mod steps;
mod stream;

use chrono::{TimeDelta, Utc};
use oversell::{ctx::Ctx, error::Error, seckill::voucher};

/// A voucher that is on sale now.
pub(crate) async fn on_sale(ctx: &Ctx, pieces: i64) -> Result<i64, Error> {
    let (now, hour) = (Utc::now(), TimeDelta::hours(1));
    voucher::add(ctx, "100元代金券", pieces, now - hour, now + hour).await
}
