//! Why an order of a voucher is refused, beside the reasons of `Error` (\[002\]): sold out is `Error::SoldOut`, as for every
//! product. `NoOrder` answers whoever looks an order up. Nothing was changed.

/// Why an order of a voucher was refused or not found; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeckillError {
    /// The voucher does not exist.
    #[error("there is no voucher {0}; add one with POST /voucher")]
    NoVoucher(i64),
    /// The voucher exists, but its stock is not in Redis.
    #[error("redis has lost the stock of voucher {0}; sell another voucher: add it with POST /voucher")]
    NoVoucherStock(i64),
    /// The voucher is not on sale yet.
    #[error("the seckill has not begun yet")]
    NotStarted,
    /// The voucher is not on sale any more.
    #[error("the seckill is over")]
    Over,
    /// This user has an order of the voucher.
    #[error("this user has ordered the voucher already")]
    AlreadyOrdered,
    /// Another request of this user is ordering now.
    #[error("another order of this user is in progress; a user orders once")]
    OrderUnderWay,
    /// The order that was looked up does not exist.
    #[error("there is no order {0}")]
    NoOrder(i64),
}
