mod members;
mod orders;
mod sentinel;
