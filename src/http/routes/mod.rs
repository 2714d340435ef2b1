//! The handlers: each extracts what it is given, calls one function of the domain, and returns what that says.

pub(super) mod check;
pub(super) mod classroom;
pub(super) mod course;
pub(super) mod deadlocks;
pub(super) mod health;
pub(super) mod ids;
pub(super) mod lab;
pub(super) mod lessons;
pub(super) mod limits;
pub(super) mod replays;
pub(super) mod runs;
pub(super) mod stock;
pub(super) mod strategies;
pub(super) mod voucher_orders;
pub(super) mod vouchers;
