//! Text 002: a seckill of vouchers, from the first oversell to the stream.

use super::Chapter;
use crate::stock::Title;

pub(super) const CHAPTER: Chapter =
    Chapter { id: "002", title: Title { zh: "优惠券秒杀", en: "A seckill of vouchers" }, lessons: &[] };
