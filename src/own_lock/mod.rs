//! A lock that a student writes: three Redis scripts, what they may contain, and what they are graded for.

mod grade;
mod product;
mod sandbox;
mod script;

pub use grade::{Grade, Mark, grade};
pub use product::{prepare, product_of};
pub use script::Scripts;
pub(crate) use script::run_script;
