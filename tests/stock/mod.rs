mod faults;
mod holders;
mod mysql;
mod resets;
mod strategies;
