//! The pages as they are served: scripts and styles of each in few files with a hash in their names, which a browser keeps for good.
//! With `?modules` a page comes as it stands in `static/`, and loads its modules one by one.

use super::{StaticFiles, link, linker::exports_of, text};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// The first part of the path of each bundled file.
pub(crate) const FOLDER: &str = "bundle/";
/// The start of a page's line that loads a script; its path follows.
const SCRIPT: &str = r#"<script type="module" src=""#;
/// The start of a page's line that loads a style sheet; its path follows.
const STYLE: &str = r#"<link rel="stylesheet" href=""#;
/// The start of a page's line that names its icon; its path follows.
const ICON: &str = r#"<link rel="icon" href=""#;
/// The first line of each bundled script, a comment for people who read it.
const READ_ALONE: &str = "// The modules of this page one by one, with their comments: add ?modules to its address.\n";

/// All pages, scripts, style sheets and icons that are served.
#[derive(Default)]
pub(crate) struct BundledFiles {
    /// Their contents by their paths.
    files: BTreeMap<String, String>,
    /// The last change of what they are made of; `None` before they are made.
    pub(crate) modified: Option<SystemTime>,
}

impl BundledFiles {
    /// The bundled files, made at the first call. A debug build makes them again if a file of `static/` has changed.
    pub(crate) fn current() -> Arc<Self> {
        static CURRENT: Mutex<Option<(SystemTime, Arc<BundledFiles>)>> = Mutex::new(None);
        let changed = last_change();
        let mut current = CURRENT.lock();
        match &*current {
            Some((of, bundles)) if *of == changed => bundles.clone(),
            _ => {
                let bundles = Arc::new(Self::make());
                *current = Some((changed, bundles.clone()));
                bundles
            }
        }
    }

    /// The content of the bundled file at this path; `None` if there is none.
    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Bundles every page of `static/` with its scripts, style sheets and icon.
    fn make() -> Self {
        let mut bundles = Self::default();
        for page in StaticFiles::iter().filter(|path| path.ends_with(".html")) {
            let served = bundles.page(page.trim_end_matches(".html"), &text(&page));
            bundles.files.insert(page.into_owned(), served);
        }
        let seconds = StaticFiles::iter().filter_map(|path| StaticFiles::get(&path)?.metadata.last_modified()).max();
        bundles.modified = seconds.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        bundles
    }

    /// Adds the page's script, style sheet and icon; returns the page with them, each in the place of the first one that it
    /// replaces.
    fn page(&mut self, name: &str, page: &str) -> String {
        let scripts: Vec<_> = page.lines().filter_map(|line| address(line, SCRIPT)).collect();
        let styles: Vec<_> = page.lines().filter_map(|line| address(line, STYLE)).collect();
        let script = self.script(name, &scripts, &BTreeSet::new(), "");
        let style: String = styles.iter().map(|path| without_comments(&text(path))).collect();
        let style = self.add(name, "css", style);
        let mut served = String::new();
        for line in page.lines() {
            if let Some(path) = address(line, SCRIPT) {
                if scripts.first() == Some(&path) {
                    // Before the first paint, so that a dark page does not flash white.
                    served += &format!("  {SCRIPT}{FOLDER}{script}\" blocking=\"render\"></script>\n");
                }
            } else if let Some(path) = address(line, STYLE) {
                if styles.first() == Some(&path) {
                    served += &format!("  {STYLE}{FOLDER}{style}\">\n");
                }
            } else if let Some(path) = address(line, ICON) {
                let icon = self.add("icon", "svg", text(&path));
                served += &line.replace(&path, &format!("{FOLDER}{icon}"));
                served.push('\n');
            } else {
                served += line;
                served.push('\n');
            }
        }
        served
    }

    /// Adds a script with these modules and returns its name. A module that is imported when the script runs is a script of
    /// its own, with the name of the module.
    fn script(&mut self, name: &str, entries: &[String], earlier: &BTreeSet<String>, end: &str) -> String {
        let script = link(entries, earlier, |path, known| {
            let end = format!("\nexport default {};", exports_of(path));
            let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".js");
            let later = self.script(name, &[path.to_owned()], known, &end);
            format!("./{later}")
        });
        self.add(name, "js", format!("{READ_ALONE}{script}{end}"))
    }

    /// Adds a file under a name with the hash of its content; returns the name, without the folder.
    fn add(&mut self, name: &str, ending: &str, content: String) -> String {
        let name = format!("{name}-{:016x}.{ending}", hash(&content));
        self.files.insert(format!("{FOLDER}{name}"), content);
        name
    }
}

/// A style sheet without its comments; no string in it may contain `/*`. White space stays, since `minifier` drops the space of
/// `.a :is(.b)` in a nested rule.
fn without_comments(style: &str) -> String {
    let mut parts = style.split("/*");
    let before = parts.next().unwrap_or_default().to_owned();
    parts.fold(before, |small, part| small + part.split_once("*/").map_or("", |(_, after)| after))
}

/// A hash that is the same in every instance of one program.
pub(crate) fn hash(content: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

/// The path in a line that begins with `start`, up to the quotation mark; `None` if it begins otherwise.
fn address(line: &str, start: &str) -> Option<String> {
    let (path, _) = line.trim_start().strip_prefix(start)?.split_once('"')?;
    Some(path.to_owned())
}

/// When a file of `static/` last changed; the Unix epoch in a release build, in which they are embedded.
fn last_change() -> SystemTime {
    if !cfg!(debug_assertions) {
        return SystemTime::UNIX_EPOCH;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("static");
    let changed = StaticFiles::iter().filter_map(|path| fs::metadata(folder.join(&*path)).ok()?.modified().ok());
    changed.max().unwrap_or(SystemTime::UNIX_EPOCH)
}
