//! The files of the page, embedded in the program. (A debug build reads them from `static/` each time.)

use rust_embed::Embed;

#[derive(Embed)]
#[folder = "static/"]
pub struct StaticFiles;
