mod galera;
mod members;
mod orders;
mod redis_cluster;
mod sentinel;
mod sentinels;
