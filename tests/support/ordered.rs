//! What the tests still use that do not register themselves.

pub(crate) use crate::old::in_a_lab;
