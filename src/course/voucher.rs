//! A voucher of an experiment's own, and the orders of it.

use super::{Cluster, NoVerdict, Target};
use crate::{
    http_client::{Ask, HttpError},
    seckill::check::{Report, Verdict},
};
use chrono::{TimeDelta, Utc};
use futures::{StreamExt, stream};
use http::{Method, header::ACCEPT};
use serde_json::{Value, json};

/// So many orders are under way at once.
const AT_ONCE: usize = 100;
/// How long each stays inside the section in which its step breaks.
const HOLD_MS: u64 = 20;

/// A voucher.
#[derive(Debug)]
pub(super) struct Voucher<'a> {
    on: &'a Cluster,
    /// Its number.
    pub id: i64,
}

/// What a crowd of orders came to.
#[derive(Debug)]
pub(super) struct Ordered {
    /// What the checker says.
    pub(super) report: Report,
    /// Orders that were placed.
    pub(super) placed: i64,
}

impl Cluster {
    /// Puts a voucher on sale, from so long from now until so long from now.
    ///
    /// # Errors
    ///
    /// [`NoVerdict::Failed`] where the service does not.
    pub(super) async fn voucher(
        &self,
        pieces: i64,
        from: TimeDelta,
        until: TimeDelta,
    ) -> Result<Voucher<'_>, NoVerdict> {
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
        Ok(Voucher { on: self, id })
    }

    /// One that is on sale now.
    pub(super) async fn on_sale(&self, pieces: i64) -> Result<Voucher<'_>, NoVerdict> {
        self.voucher(pieces, -TimeDelta::hours(1), TimeDelta::hours(1))
            .await
    }

    /// So many users order a voucher of so many pieces, each so often and at once.
    pub(super) async fn crowd(
        &self,
        step: &str,
        target: Target,
        pieces: i64,
        users: i64,
        repeats: i64,
    ) -> Result<Ordered, NoVerdict> {
        let voucher = self.on_sale(pieces).await?;
        let (at, more) = (self.address(target), format!("&hold_ms={HOLD_MS}"));
        let (voucher_, more_) = (&voucher, &more);
        let orders = stream::iter(0..users * repeats)
            .map(|n| async move { voucher_.order(at, step, n / repeats, more_).await })
            .buffer_unordered(AT_ONCE);
        let answers: Vec<_> = orders.collect().await;
        let mut placed = 0;
        for answer in answers {
            placed += i64::from(answer?.0 == 200);
        }
        let report = voucher.report().await?;
        voucher.remove().await?;
        Ok(Ordered { report, placed })
    }
}

impl Voucher<'_> {
    /// Orders it for one of the users that only this voucher has: status and answer.
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
        let user = (self.id * 1_000_000 + user).to_string();
        let request = self
            .on
            .request(Method::POST, &url)
            .header("x-user-id", user);
        let answer = request.header(ACCEPT, "application/json").answer().await?;
        Ok((answer.status.as_u16(), answer.json()?))
    }

    /// What the checker says of its orders. Those that are written behind are waited for.
    pub(super) async fn report(&self) -> Result<Report, NoVerdict> {
        let mut before = None;
        loop {
            let url = format!("{}/voucher/{}/check", self.on.three(), self.id);
            let report: Report = self.on.get(&url).await?.success()?.json()?;
            if before.replace(report.orders) == Some(report.orders)
                && report.verdict != Verdict::StockDiffers
            {
                return Ok(report);
            }
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        }
    }

    /// Removes it, with its orders.
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
