//! A voucher of an experiment, and its orders.

use super::{Cluster, NoVerdict};
use chrono::{TimeDelta, Utc};
use http::{Method, header::ACCEPT};
use oversell::{
    claims::Target,
    load::{Row, row::OrderFigures},
};
use oversell_lab::{
    clients::http_client::{Ask, HttpError},
    terminal::failure::{Failure, unusable},
};
use serde_json::{Value, json};

/// How long each order of a crowd stays in the section in which its step breaks: other orders come in between.
const HOLD_MS: u64 = 20;

/// A voucher of an experiment, with users that no other voucher has. Dropping it does not remove it.
#[derive(Debug)]
pub(super) struct TrialVoucher<'a> {
    on: &'a Cluster,
    pub id: i64,
}

impl Cluster {
    /// Makes a voucher; its period is from `from` until `until`, relative to now.
    pub(super) async fn create_voucher(
        &self,
        pieces: i64,
        from: TimeDelta,
        until: TimeDelta,
    ) -> Result<TrialVoucher<'_>, NoVerdict> {
        let [begin, end] = [from, until].map(|by| (Utc::now() + by).to_rfc3339());
        let new = json!({"title": "100元代金券", "stock": pieces, "begin": begin, "end": end});
        let added: Value = self
            .request(Method::POST, &format!("{}/voucher", self.nginx()))
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

    /// Makes a voucher that is on sale now.
    pub(super) async fn create_voucher_on_sale(
        &self,
        pieces: i64,
    ) -> Result<TrialVoucher<'_>, NoVerdict> {
        self.create_voucher(pieces, -TimeDelta::hours(1), TimeDelta::hours(1))
            .await
    }

    /// Has each of `users` order a new voucher `repeats` times, all at once. The row has no order figures: they come apart.
    pub(super) async fn send_orders(
        &self,
        step: &str,
        target: Target,
        pieces: i64,
        users: u64,
        repeats: u64,
    ) -> Result<(Row, OrderFigures), Failure> {
        let mut plan = self.course_load(step, target);
        (plan.threads, plan.count, plan.hold_ms) = ((users * repeats) as usize, pieces, HOLD_MS);
        let mut row = self.send_load(plan.for_orders(users, repeats)).await?;
        let orders = row.orders.take();
        let none = || unusable!("{step}: nobody has counted the orders");
        Ok((row, orders.ok_or_else(none)?))
    }
}

impl TrialVoucher<'_> {
    /// Orders the voucher for one of its own users; returns status and answer. `more` is added to the query.
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

    /// The id of this voucher's own user with this number.
    pub(super) const fn user(&self, user: i64) -> i64 {
        self.id * 1_000_000 + user
    }

    /// Deletes the voucher with its orders.
    pub(super) async fn remove(self) -> Result<(), NoVerdict> {
        self.on
            .request(
                Method::DELETE,
                &format!("{}/voucher/{}", self.on.nginx(), self.id),
            )
            .answer()
            .await?
            .success()?;
        Ok(())
    }
}
