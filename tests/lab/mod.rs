mod faults;
mod galera_nodes;
mod members;
mod redis_cluster;
