mod judge;
mod runs;
