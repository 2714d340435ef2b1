mod holders;
mod mysql;
mod redis_faults;
mod resets;
mod stages;
mod standstill;
mod strategies;
mod zookeeper_faults;
