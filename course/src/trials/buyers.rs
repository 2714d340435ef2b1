//! Buyers of one strategy or step: the only loop that buys, until something is over or a number of pieces.
//!
//! Next: `purchases.rs` counts what they bought, and finds the times in which nobody could buy.

use super::{
    Cluster, NoVerdict, Product,
    purchases::{STOCK, SaleCounts, Sales, outcome},
    voucher::TrialVoucher,
};
use futures::future::join_all;
use oversell::{
    load::history::Outcome,
    seckill::check::{VoucherOrder, VoucherRecords},
    stock::{self, Store},
};
use parking_lot::Mutex;
use serde_json::Value;
use std::{
    mem,
    sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed},
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// The pause between purchases of a buyer: short beside a fault of seconds.
const POLL_PAUSE: Duration = Duration::from_millis(50);

/// All answers to the buyers of one strategy: counts by outcome, and the remaining pieces and the orders that they name.
#[derive(Debug, Default)]
pub(super) struct BuyerAnswers {
    pub(super) counts: SaleCounts,
    /// The remaining pieces that an answer names, for each answer that does.
    pub(super) remaining: Vec<i64>,
    pub(super) orders: Vec<VoucherOrder>,
}

impl BuyerAnswers {
    /// Counts an answer; of a sale it keeps the remaining pieces and the order of `user`, if `body` names them.
    fn record(&mut self, outcome: &Outcome, body: Option<&Value>, user: Option<i64>) {
        self.counts.count(outcome);
        if let (Outcome::Sold, Some(body)) = (outcome, body) {
            self.counts.kept += i64::from(body["lock"] == "kept");
            self.remaining.extend(body["remaining"].as_i64());
            let order_id = body["order_id"].as_str().and_then(|id| id.parse().ok());
            let order = order_id.zip(user);
            self.orders.extend(order.map(|(order_id, user_id)| VoucherOrder { order_id, user_id }));
        }
    }
}

/// The goods that the buyers of one strategy buy: a product, or for a step of the seckill a voucher.
enum Goods<'a> {
    /// A product, and the store that counts its pieces.
    Product(Product<'a>, Store),
    /// A voucher, and the number of its users; each orders once.
    Voucher(TrialVoucher<'a>, AtomicI64),
}

/// What is left of the goods.
pub(super) enum Left {
    /// The pieces that left the stock.
    Gone(i64),
    Orders(VoucherRecords),
}

/// The buyers of a strategy or step, with goods of their own.
pub(super) struct Buyers<'a> {
    pub(super) slug: &'static str,
    goods: Goods<'a>,
    /// Added to the query of each purchase.
    query: &'static str,
    pub(super) sales: Sales,
    answers: Mutex<BuyerAnswers>,
}

impl<'a> Buyers<'a> {
    /// Makes a product for a strategy, or a voucher for a step of the seckill, with [`STOCK`] pieces.
    pub(super) async fn new(on: &'a Cluster, slug: &'static str, query: &'static str) -> Result<Self, NoVerdict> {
        let goods = match stock::find(slug) {
            Some(strategy) => Goods::Product(on.create_product_on_each_node(STOCK).await?, strategy.spec.store),
            None => Goods::Voucher(on.create_voucher(STOCK).await?, AtomicI64::new(0)),
        };
        Ok(Self { slug, goods, query, sales: Sales::default(), answers: Mutex::default() })
    }

    /// Buys a piece at an instance, or orders the voucher for a new user.
    async fn buy_at(&self, at: &str) {
        let buys = async {
            let (answer, user) = match &self.goods {
                Goods::Product(product, _) => (product.buy(at, self.slug, self.query).await, None),
                Goods::Voucher(voucher, users) => {
                    let user = users.fetch_add(1, Relaxed);
                    (voucher.order(at, self.slug, user, self.query).await, Some(voucher.user(user)))
                }
            };
            let outcome = outcome(&answer);
            let body = answer.ok().map(|(_, body)| body);
            self.answers.lock().record(&outcome, body.as_ref(), user);
            outcome
        };
        self.sales.record(buys).await;
    }

    /// Has each of these buyers, spread over the instances, buy `each` pieces, one after the other.
    pub(super) async fn buy_at_all(&self, at: &[String], [buyers, each]: [usize; 2]) -> Result<SaleCounts, NoVerdict> {
        let before = self.gone().await?;
        let begun = Instant::now();
        let buyers = at.iter().cycle().take(buyers).map(|at| async move {
            for _ in 0..each {
                self.buy_at(at).await;
            }
        });
        join_all(buyers).await;
        let counts = self.take_answers().counts;
        let per_sec = counts.sold as f64 / begun.elapsed().as_secs_f64();
        Ok(SaleCounts { per_sec, gone: self.gone().await? - before, ..counts })
    }

    /// Takes the answers out.
    pub(super) fn take_answers(&self) -> BuyerAnswers {
        mem::take(&mut *self.answers.lock())
    }

    /// Reads the stock or the orders.
    pub(super) async fn left(&self) -> Result<Left, NoVerdict> {
        Ok(match &self.goods {
            Goods::Product(product, store) => Left::Gone(STOCK - product.stock().count(*store).await?),
            Goods::Voucher(voucher, _) => Left::Orders(voucher.read_records().await?),
        })
    }

    /// Counts the pieces that left the stock, or the orders.
    pub(super) async fn gone(&self) -> Result<i64, NoVerdict> {
        Ok(match self.left().await? {
            Left::Gone(gone) => gone,
            Left::Orders(records) => records.pieces - records.stock,
        })
    }

    /// Removes the product or the voucher at the service.
    pub(super) async fn remove(self) -> Result<(), NoVerdict> {
        match self.goods {
            Goods::Product(product, _) => product.remove().await,
            Goods::Voucher(voucher, _) => voucher.remove().await,
        }
    }
}

/// Runs `fault` while buyers of all strategies buy, `each` at every instance, with a pause between purchases; returns the result of
/// `fault` after their last purchases.
pub(super) async fn buy_during<T>(on: &Cluster, all: &[Buyers<'_>], each: usize, fault: impl Future<Output = T>) -> T {
    let over = AtomicBool::new(false);
    let places = all.iter().flat_map(|buyers| on.instances().iter().map(move |at| (buyers, at)));
    let buying = places.flat_map(|place| vec![place; each]).map(async |(buyers, at)| {
        while !over.load(Relaxed) {
            buyers.buy_at(at).await;
            sleep(POLL_PAUSE).await;
        }
    });
    let fault = async {
        let result = fault.await;
        over.store(true, Relaxed);
        result
    };
    tokio::join!(fault, join_all(buying)).0
}
