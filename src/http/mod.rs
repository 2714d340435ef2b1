//! HTTP.
pub mod serve;
