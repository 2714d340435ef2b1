//! One race to a file. A file registers itself: it has a constant `RACE`.

include!(concat!(env!("OUT_DIR"), "/races.rs"));
