mod herd;
mod limits;
pub(crate) mod windows;
mod zookeeper;

pub(crate) use crate::old::classroom::*;
