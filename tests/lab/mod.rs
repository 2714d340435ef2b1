mod galera;
mod galera_nodes;
mod members;
mod orders;
mod redis_cluster;
mod sentinel;
mod sentinels;
