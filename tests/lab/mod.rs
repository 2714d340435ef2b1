mod faults;
mod galera;
mod galera_nodes;
mod members;
mod redis_cluster;
mod sentinels;
