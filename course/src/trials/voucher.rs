//! A voucher of an experiment, and its orders.

use super::{Cluster, NoVerdict};
use http::{Method, header::ACCEPT};
use oversell::{
    claims::Target,
    load::{Row, row::OrderFigures, voucher::LoadVoucher},
    seckill::check::VoucherRecords,
};
use oversell_lab::{
    clients::http_client::{Ask, HttpError},
    terminal::failure::{Failure, unusable},
};
use serde_json::Value;
use std::fmt::Display;

/// How long each order of a crowd stays in the section in which its step breaks: other orders come in between.
const HOLD_MS: u64 = 20;

/// A voucher of an experiment, with users that no other voucher has. Dropping it does not remove it.
#[derive(Debug)]
pub(super) struct TrialVoucher<'a> {
    on: &'a Cluster,
    voucher: LoadVoucher,
}

impl Cluster {
    /// Deletes the voucher of this number with its orders.
    pub(super) async fn remove_voucher(&self, id: impl Display) -> Result<(), NoVerdict> {
        let url = format!("{}/voucher/{id}", self.nginx());
        let removed = self.request(Method::DELETE, &url).answer();
        removed.await?.success()?;
        Ok(())
    }

    /// Makes a voucher that is on sale now.
    pub(super) async fn create_voucher(&self, pieces: i64) -> Result<TrialVoucher<'_>, NoVerdict> {
        let voucher = LoadVoucher::add(self.nginx(), pieces, self.token.as_ref()).await?;
        Ok(TrialVoucher { on: self, voucher })
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
    pub(super) async fn order(&self, at: &str, step: &str, user: i64, more: &str) -> Result<(u16, Value), HttpError> {
        let url = format!("{at}/voucher-order/seckill/{}?strategy={step}{more}", self.voucher.id);
        let user = self.user(user).to_string();
        let request = self.on.request(Method::POST, &url).header("x-user-id", user);
        let answer = request.header(ACCEPT, "application/json").answer().await?;
        Ok((answer.status.as_u16(), answer.json()?))
    }

    /// The id of this voucher's own user with this number.
    pub(super) const fn user(&self, user: i64) -> i64 {
        self.voucher.id * 1_000_000 + user
    }

    /// Reads the voucher with its orders.
    pub(super) async fn read_records(&self) -> Result<VoucherRecords, NoVerdict> {
        Ok(self.voucher.read_records().await?)
    }

    /// Deletes the voucher with its orders.
    pub(super) async fn remove(self) -> Result<(), NoVerdict> {
        Ok(self.voucher.remove().await?)
    }
}
