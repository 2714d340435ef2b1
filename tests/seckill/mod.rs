mod faults;
mod ids;
mod over_http;
mod steps;
mod stream;
