mod members;
mod sentinel;
