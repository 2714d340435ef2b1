//! A lock that a student writes: three Redis scripts, what they may contain, and what they are graded for.

mod grade;
mod product;
mod sandbox;
mod script;
mod visitors;

pub use grade::{Grade, Mark, grade};
pub use product::prepare;
pub use script::Scripts;
pub(crate) use script::run_script;
pub use visitors::product_of;
