//! The files of the page, embedded in the program. (A debug build reads them from `static/` each time.)

mod bundle;
mod linker;

pub(crate) use bundle::{BundledFiles, FOLDER, hash};
pub use linker::link;

use rust_embed::Embed;

/// The files of `static/`, embedded.
#[derive(Embed)]
#[folder = "static/"]
pub struct StaticFiles;

/// The text of a file of `static/`. Panics if there is none: the program or another file names it, so it must be there.
pub fn text(path: &str) -> String {
    let file = StaticFiles::get(path).unwrap_or_else(|| panic!("static/{path} is embedded"));
    String::from_utf8_lossy(&file.data).into_owned()
}
