//! A voucher of an experiment, and its orders.

use super::{Cluster, NoVerdict};
use crate::{
    claims::Target,
    clients::http_client::{Ask, HttpError},
    load::{Row, row::OrderFigures},
    terminal::failure::{Failure, unusable},
};
use chrono::{TimeDelta, Utc};
use http::{Method, header::ACCEPT};
use serde_json::{Value, json};

/// How long each order stays in the section in which its step breaks.
const HOLD_MS: u64 = 20;

#[derive(Debug)]
pub(super) struct TrialVoucher<'a> {
    on: &'a Cluster,
    pub id: i64,
}

impl Cluster {
    /// Puts a voucher on sale; `from` and `until` are relative to now.
    pub(super) async fn voucher(
        &self,
        pieces: i64,
        from: TimeDelta,
        until: TimeDelta,
    ) -> Result<TrialVoucher<'_>, NoVerdict> {
        let [begin, end] = [from, until].map(|by| (Utc::now() + by).to_rfc3339());
        let new = json!({"title": "100元代金券", "stock": pieces, "begin": begin, "end": end});
        let added: Value = self
            .request(Method::POST, &format!("{}/voucher", self.three()))
            .json(&new)
            .answer()
            .await?
            .success()?
            .json()?;
        let id = added["id"]
            .as_i64()
            .ok_or_else(|| NoVerdict::failed("a voucher without a number"))?;
        Ok(TrialVoucher { on: self, id })
    }

    pub(super) async fn on_sale(&self, pieces: i64) -> Result<TrialVoucher<'_>, NoVerdict> {
        self.voucher(pieces, -TimeDelta::hours(1), TimeDelta::hours(1))
            .await
    }

    /// Each of `users` orders the same voucher `repeats` times, all at once.
    pub(super) async fn crowd(
        &self,
        step: &str,
        target: Target,
        pieces: i64,
        users: u64,
        repeats: u64,
    ) -> Result<(Row, OrderFigures), Failure> {
        let mut plan = self.plan(step, target);
        (plan.threads, plan.count, plan.hold_ms) = ((users * repeats) as usize, pieces, HOLD_MS);
        let mut row = self.send(plan.ordering(users, repeats)).await?;
        let orders = row.orders.take();
        let none = || unusable!("{step}: nobody has counted the orders");
        Ok((row, orders.ok_or_else(none)?))
    }
}

impl TrialVoucher<'_> {
    /// Orders it for one of its own users; returns status and answer.
    pub(super) async fn order(
        &self,
        at: &str,
        step: &str,
        user: i64,
        more: &str,
    ) -> Result<(u16, Value), HttpError> {
        let url = format!(
            "{at}/voucher-order/seckill/{}?strategy={step}{more}",
            self.id
        );
        let user = self.user(user).to_string();
        let request = self
            .on
            .request(Method::POST, &url)
            .header("x-user-id", user);
        let answer = request.header(ACCEPT, "application/json").answer().await?;
        Ok((answer.status.as_u16(), answer.json()?))
    }

    /// The id of one of this voucher's own users.
    pub(super) const fn user(&self, user: i64) -> i64 {
        self.id * 1_000_000 + user
    }

    pub(super) async fn remove(self) -> Result<(), NoVerdict> {
        self.on
            .request(
                Method::DELETE,
                &format!("{}/voucher/{}", self.on.three(), self.id),
            )
            .answer()
            .await?
            .success()?;
        Ok(())
    }
}
