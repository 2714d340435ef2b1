//! Which modules of the crate a source file names: read by syn, so that neither a `use` over several lines nor a path in
//! an expression, a macro or a `pub(in …)` is missed.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::{
    ItemMod, ItemUse, Macro, Path, UseTree,
    visit::{self, Visit},
};

/// The paths of the crate that `source` names, from the root on: `stock::row` is `["stock", "row"]`. `module` is where
/// the file itself is: `["stock", "none"]`.
pub(crate) fn of(source: &str, module: &[String]) -> syn::Result<BTreeSet<Vec<String>>> {
    let mut named = Named {
        module: module.to_vec(),
        found: BTreeSet::new(),
    };
    named.visit_file(&syn::parse_file(source)?);
    Ok(named.found)
}

struct Named {
    module: Vec<String>,
    found: BTreeSet<Vec<String>>,
}

impl Named {
    /// Makes a path absolute; one that begins with neither `crate`, `oversell`, `self` nor `super` is another crate's or
    /// a name that was imported, whose import is seen.
    fn note(&mut self, path: &[String]) {
        let Some(first) = path.first() else { return };
        let up = path.iter().take_while(|part| *part == "super").count();
        let inside = |depth: usize| self.module.iter().take(depth).cloned();
        let absolute: Vec<String> = match first.as_str() {
            "crate" | "oversell" => path[1..].to_vec(),
            "self" => inside(self.module.len())
                .chain(path[1..].iter().cloned())
                .collect(),
            "super" => inside(self.module.len().saturating_sub(up))
                .chain(path[up..].iter().cloned())
                .collect(),
            _ => return,
        };
        // Nothing is left of the `crate` in `pub(crate)`.
        if !absolute.is_empty() {
            self.found.insert(absolute);
        }
    }

    fn note_use(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: String| before.iter().cloned().chain([name]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => self.note_use(&with(path.ident.to_string()), &path.tree),
            UseTree::Name(name) => self.note(&with(name.ident.to_string())),
            // The root under another name may stand for everything in it.
            UseTree::Rename(name) if name.ident == "crate" => {
                self.note(&["crate".to_owned(), "*".to_owned()])
            }
            UseTree::Rename(name) => self.note(&with(name.ident.to_string())),
            UseTree::Glob(_) => self.note(&with("*".to_owned())),
            UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|tree| self.note_use(before, tree)),
        }
    }

    /// What is inside a macro is no syntax that syn knows: there every `a::b::c` counts.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.note(&std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                other => {
                    self.note(&std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.note_tokens(group.stream());
                    }
                }
            }
        }
        self.note(&path);
    }
}

impl Visit<'_> for Named {
    fn visit_item_use(&mut self, item: &ItemUse) {
        self.note_use(&[], &item.tree);
        visit::visit_visibility(self, &item.vis);
    }

    fn visit_path(&mut self, path: &Path) {
        self.note(
            &path
                .segments
                .iter()
                .map(|segment| segment.ident.to_string())
                .collect::<Vec<_>>(),
        );
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &Macro) {
        self.visit_path(&item.path);
        self.note_tokens(item.tokens.clone());
    }

    fn visit_item_mod(&mut self, item: &ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }
}
