//! The files of the page, embedded in the program. (A debug build reads them from `static/` each time.)

mod bundle;
mod linker;

pub(crate) use bundle::{Bundles, FOLDER, hash};
pub(crate) use linker::link;

use rust_embed::Embed;

#[derive(Embed)]
#[folder = "static/"]
pub struct StaticFiles;

/// Panics if there is none: the name stands in the program or in another of the files.
pub fn text(path: &str) -> String {
    let file = StaticFiles::get(path).unwrap_or_else(|| panic!("static/{path} is embedded"));
    String::from_utf8_lossy(&file.data).into_owned()
}
