//! A product of an experiment, which nobody else buys.

use super::{Cluster, NoVerdict, tools::get_json};
use http::Method;
use oversell::load::plan::own_product;
use oversell_lab::clients::http_client::{Ask, HttpError};
use serde_json::{Value, json};

/// A product of an experiment, in the stock of MySQL and of Redis. Dropping it does not remove it.
#[derive(Debug)]
pub(crate) struct Product<'a> {
    pub(super) on: &'a Cluster,
    /// The `stock_id`.
    pub id: i64,
}

/// The pieces in each store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StockCounts {
    /// The count of the row in MySQL.
    pub mysql: i64,
    /// The count of the key in Redis.
    pub redis: i64,
}

impl Cluster {
    /// Makes a product with `count` pieces.
    pub(crate) async fn create_product(&self, count: i64) -> Result<Product<'_>, NoVerdict> {
        let id = own_product();
        let put = format!("{}/stock?stock_id={id}", self.nginx());
        let put = self
            .request(Method::PUT, &put)
            .json(&json!({"count": count}));
        put.answer().await?.success()?;
        Ok(Product { on: self, id })
    }
}

impl Cluster {
    /// Makes a product, and reads it at each instance, which waits until its node of the database has it.
    pub(super) async fn create_product_on_each_node(
        &self,
        count: i64,
    ) -> Result<Product<'_>, NoVerdict> {
        let product = self.create_product(count).await?;
        for at in self.instances() {
            get_json(self, &format!("{at}/stock?stock_id={}", product.id)).await?;
        }
        Ok(product)
    }
}

impl Product<'_> {
    /// Reads how many pieces each store has, by `GET /stock`. Fails if one is missing.
    pub(crate) async fn remaining(&self) -> Result<StockCounts, NoVerdict> {
        let stock: Value = self.on.get(&self.stock_url()).await?.success()?.json()?;
        let count = |store: &str| {
            let count = stock[store]["count"].as_i64();
            count.ok_or_else(|| NoVerdict::failed("a store is missing"))
        };
        Ok(StockCounts {
            mysql: count("mysql")?,
            redis: count("redis")?,
        })
    }

    /// Buys a piece at an instance; returns status and answer. `more` is added to the query: `&hold_ms=3000`.
    pub(crate) async fn buy(
        &self,
        at: &str,
        strategy: &str,
        more: &str,
    ) -> Result<(u16, Value), HttpError> {
        self.on
            .answer(
                Method::POST,
                &format!("{at}/check/lock/{strategy}?stock_id={}{more}", self.id),
            )
            .await
    }

    /// Removes the product from both stores, with its locks.
    pub(crate) async fn remove(self) -> Result<(), NoVerdict> {
        let removed = self.on.request(Method::DELETE, &self.stock_url()).answer();
        removed.await?.success()?;
        Ok(())
    }

    fn stock_url(&self) -> String {
        format!("{}/stock?stock_id={}", self.on.nginx(), self.id)
    }
}
