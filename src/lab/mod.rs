//! The lab: real servers, started and stopped.
pub mod command;
