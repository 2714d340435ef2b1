//! What a source file names of its own crate: read by syn, so that neither a `use` over several lines nor a path in an
//! expression, a macro or a `pub(in …)` is missed.

use proc_macro2::{TokenStream, TokenTree};
use std::{
    collections::BTreeSet,
    mem::{replace, take},
};
use syn::{
    Attribute, Item, ItemMod, ItemUse, Macro, UseTree, Visibility,
    visit::{self, Visit},
};

/// A path from the crate's root on: `stock::row` is `["stock", "row"]`.
pub(super) type Path = Vec<String>;

/// What a source file names of its own crate.
#[derive(Default)]
pub(super) struct Imports {
    /// Everything, its tests included.
    pub(super) named: BTreeSet<Path>,
    /// What its own code needs: neither its tests, nor a child that it only declares or re-exports.
    pub(super) needed: BTreeSet<Path>,
    /// What its children and others can name through it: the name, and what stands behind it.
    pub(super) imported: Vec<(String, Path)>,
}

/// Reads a file. `module` is where it is itself, `["stock", "none"]`, or nothing for the root of the crate, whose name is
/// `crate_name`.
pub(super) fn of(source: &str, crate_name: &str, module: &[String]) -> syn::Result<Imports> {
    let file = syn::parse_file(source)?;
    let children = file.items.iter().filter_map(|item| match item {
        Item::Mod(child) => Some(child.ident.to_string()),
        _ => None,
    });
    let mut reader = ImportReader {
        crate_name: crate_name.to_owned(),
        file: module.to_vec(),
        module: module.to_vec(),
        children: children.collect(),
        words: BTreeSet::new(),
        is_not_needed: false,
        imports: Imports::default(),
    };
    reader.visit_file(&file);
    let ImportReader { words, mut imports, .. } = reader;
    // A child's item that is re-exported and used as well is needed.
    let used = imports.imported.iter().filter(|(name, _)| words.contains(name));
    imports.needed.extend(used.map(|(_, path)| path.clone()));
    Ok(imports)
}

struct ImportReader {
    crate_name: String,
    file: Path,
    /// Where it reads just now: the file's module, or one inside it.
    module: Path,
    children: BTreeSet<String>,
    /// The names with which the paths of its code begin.
    words: BTreeSet<String>,
    /// Whether what it reads is not needed by the file's own code: a test, or the visibility of an item.
    is_not_needed: bool,
    imports: Imports,
}

impl ImportReader {
    /// Makes a path absolute; `None` for one that begins with neither `crate`, the crate's name, `self`, `super` nor a child: it
    /// is another crate's, or of an imported name, whose import is seen.
    fn absolute(&self, path: &[String]) -> Option<Path> {
        let first = path.first()?;
        let up = path.iter().take_while(|part| *part == "super").count();
        let (base, rest) = match first.as_str() {
            "crate" => (0, &path[1..]),
            name if name == self.crate_name => (0, &path[1..]),
            "self" => (self.module.len(), &path[1..]),
            "super" => (self.module.len().saturating_sub(up), &path[up..]),
            // A child alone is no path to anything in it: it is a variable of that name.
            child if path.len() > 1 && self.module == self.file && self.children.contains(child) => (self.module.len(), path),
            _ => return None,
        };
        let absolute = [&self.module[..base], rest].concat();
        // Nothing is left of the `crate` in `pub(crate)`.
        (!absolute.is_empty()).then_some(absolute)
    }

    fn record_path(&mut self, path: &[String]) {
        if let Some(absolute) = self.absolute(path) {
            if !self.is_not_needed {
                self.imports.needed.insert(absolute.clone());
            }
            self.imports.named.insert(absolute);
        } else if let (Some(first), false) = (path.first(), self.is_not_needed) {
            self.words.insert(first.clone());
        }
    }

    fn record_use(&mut self, before: &[String], tree: &UseTree, exports: bool) {
        let with = |name: String| [before, &[name]].concat();
        let (path, name) = match tree {
            UseTree::Path(path) => {
                return self.record_use(&with(path.ident.to_string()), &path.tree, exports);
            }
            UseTree::Group(group) => {
                return (group.items.iter()).for_each(|tree| self.record_use(before, tree, exports));
            }
            UseTree::Name(name) => (with(name.ident.to_string()), name.ident.to_string()),
            // The root under another name may stand for everything in it.
            UseTree::Rename(name) if name.ident == "crate" => (vec!["crate".to_owned(), "*".to_owned()], String::new()),
            UseTree::Rename(name) => (with(name.ident.to_string()), name.rename.to_string()),
            UseTree::Glob(_) => (with("*".to_owned()), "*".to_owned()),
        };
        let absolute = self.absolute(&path).filter(|_| !self.is_not_needed && name != "*");
        match absolute {
            Some(child) if exports && child.starts_with(&self.file) => {
                self.imports.named.insert(child.clone());
                self.imports.imported.push((name, child));
            }
            absolute => {
                self.record_path(&path);
                (self.imports.imported).extend(absolute.map(|path| (name, path)));
            }
        }
    }

    /// What is inside a macro is no syntax that syn knows: there every `a::b::c` counts.
    fn record_tokens(&mut self, tokens: TokenStream) {
        let mut path: Path = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.record_path(&take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                other => {
                    self.record_path(&take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.record_tokens(group.stream());
                    }
                }
            }
        }
        self.record_path(&path);
    }
}

impl Visit<'_> for ImportReader {
    fn visit_item(&mut self, item: &Item) {
        let before = self.is_not_needed;
        self.is_not_needed |= attributes(item).iter().any(is_for_tests);
        visit::visit_item(self, item);
        self.is_not_needed = before;
    }

    fn visit_visibility(&mut self, visibility: &Visibility) {
        let before = replace(&mut self.is_not_needed, true);
        visit::visit_visibility(self, visibility);
        self.is_not_needed = before;
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        let exports = !matches!(item.vis, Visibility::Inherited);
        self.record_use(&[], &item.tree, exports);
        self.visit_visibility(&item.vis);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let parts = path.segments.iter();
        self.record_path(&parts.map(|part| part.ident.to_string()).collect::<Path>());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &Macro) {
        self.visit_path(&item.path);
        self.record_tokens(item.tokens.clone());
    }

    fn visit_item_mod(&mut self, item: &ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && (attribute.meta.require_list()).is_ok_and(|list| list.tokens.to_string() == "test")
}
