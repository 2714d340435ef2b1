//! The product that a visitor's own lock sells.

use super::visitors;
use crate::{
    ctx::Ctx,
    error::Error,
    section::{Job, redis_key},
};
use redis::AsyncTypedCommands;

/// The pieces of a visitor's product, as many as the course's.
const PIECES: i64 = 5000;

/// Makes the job sell by the lock of this visitor; with `own_product`, from the visitor's product, whose pieces are put into
/// Redis for a day. If its key exists, it stays as it is, and its day is not renewed.
/// Errors: [`Error::TooMany`] if too many visitors have a product of their own; another product must be there, since the scripts
/// may leave its lock behind.
pub async fn prepare(ctx: &Ctx, job: Job, visitor: &str, own_product: bool) -> Result<Job, Error> {
    let mut job = job.with_visitor(visitor);
    if own_product {
        visitors::note(ctx, visitor, None).await?;
        job.request.stock_id = visitors::product_of(visitor);
        let mut put = redis::cmd("SET");
        put.arg(redis_key::stock_key(ctx, job.request.stock_id)).arg(PIECES);
        put.arg("NX").arg("EX").arg(visitors::LIFETIME.as_secs());
        put.exec_async(&mut ctx.redis.connection()).await?;
    } else if !ctx.redis.connection().exists(redis_key::stock_key(ctx, job.request.stock_id)).await? {
        return Err(redis_key::missing_key_error(ctx, job.request.stock_id).await);
    }
    Ok(job)
}
