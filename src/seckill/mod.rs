//! A seckill of vouchers: many users, few pieces, one order per user.
//!
//! In reading order: [`id_worker`], where the numbers of orders come from.

pub mod id_worker;
