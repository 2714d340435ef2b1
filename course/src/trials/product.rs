//! A product of an experiment, which nobody else buys.

use super::{Cluster, NoVerdict};
use http::Method;
use oversell::load::{plan::own_product, stock_api::StockApi};
use oversell_lab::clients::http_client::HttpError;
use serde_json::Value;

/// A product of an experiment, in the stock of MySQL and of Redis. Dropping it does not remove it.
#[derive(Debug)]
pub(crate) struct Product<'a> {
    pub(super) on: &'a Cluster,
    /// The `stock_id`.
    pub id: i64,
}

impl Cluster {
    /// Makes a product with `count` pieces.
    pub(crate) async fn create_product(&self, count: i64) -> Result<Product<'_>, NoVerdict> {
        let id = own_product();
        let product = Product { on: self, id };
        product.stock().put(count).await?;
        Ok(product)
    }

    /// Makes a product, and reads it at each instance, which waits until its node of the database has it.
    pub(super) async fn create_product_on_each_node(&self, count: i64) -> Result<Product<'_>, NoVerdict> {
        let product = self.create_product(count).await?;
        for at in self.instances() {
            self.get(&format!("{at}/stock?stock_id={}", product.id)).await?.success()?;
        }
        Ok(product)
    }
}

impl Product<'_> {
    /// The routes of its stock.
    pub(super) fn stock(&self) -> StockApi<'_> {
        StockApi { base: self.on.nginx(), stock_id: self.id, strategy: None, token: self.on.token.as_ref() }
    }

    /// Buys a piece at an instance; returns status and answer. `more` is added to the query: `&hold_ms=3000`.
    pub(crate) async fn buy(&self, at: &str, strategy: &str, more: &str) -> Result<(u16, Value), HttpError> {
        self.on.answer(Method::POST, &format!("{at}/check/lock/{strategy}?stock_id={}{more}", self.id)).await
    }

    /// Removes the product from both stores, with its locks.
    pub(crate) async fn remove(self) -> Result<(), NoVerdict> {
        Ok(self.stock().remove().await?)
    }
}
