mod dashboard;
mod lifecycle;
