//! Why an order of a voucher is refused, beside the reasons of `Error` (\[002\]): sold out is `Error::SoldOut`, as for every
//! product. `NoOrder` answers whoever looks an order up. Nothing was changed.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeckillError {
    #[error("there is no voucher {0}; add one with POST /voucher")]
    NoVoucher(i64),
    #[error(
        "redis has lost the stock of voucher {0}; sell another voucher: add it with POST /voucher"
    )]
    NoVoucherStock(i64),
    #[error("the seckill has not begun yet")]
    NotStarted,
    #[error("the seckill is over")]
    Over,
    #[error("this user has ordered the voucher already")]
    AlreadyOrdered,
    #[error("another order of this user is in progress; a user orders once")]
    OrderUnderWay,
    #[error("there is no order {0}")]
    NoOrder(i64),
}
