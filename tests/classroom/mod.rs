mod deadlocks;
mod windows;
