mod galera;
mod members;
mod orders;
mod sentinel;
mod sentinels;
