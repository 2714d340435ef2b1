mod deadlocks;
mod demos;
mod herd;
mod lanes;
mod limits;
mod windows;
mod zookeeper;
