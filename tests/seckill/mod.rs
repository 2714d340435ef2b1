mod faults;
mod ids;
mod over_http;
mod stream;
