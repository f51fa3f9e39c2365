//! Which items can be named from outside, and under which paths.

use std::collections::BTreeMap;

use syn::Item;

use super::attributes;
use super::listing::Listing;
use super::sources::{self, Declared, Module, Sources, Target};

/// Where an item is declared: its module, and its position there.
type Key = (Vec<String>, usize);

/// An item that can be named from outside.
pub(super) struct Export<'s> {
    pub(super) declared: Declared<'s>,
    /// The path under which it is listed: the shortest.
    pub(super) path: String,
    /// Its marks, and the conditions of the way that leads to it.
    pub(super) marks: Vec<String>,
    others: Vec<(String, Vec<String>)>,
}

/// All that can be named from outside.
#[derive(Default)]
pub(super) struct Exports<'s> {
    found: BTreeMap<Key, Export<'s>>,
    /// Paths that are no item of this crate, with what they are.
    names: Vec<(String, String, Vec<String>)>,
}

/// Follows `pub mod` and `pub use` from the root of a crate.
pub(super) fn find(sources: &Sources) -> Exports<'_> {
    let mut exports = Exports::default();
    if let Some(root) = sources.root() {
        Walk { sources, exports: &mut exports, within: Vec::new() }.module(root, &sources.name, &[]);
        exports.macros(sources);
    }
    exports
}

impl<'s> Exports<'s> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Export<'s>> {
        self.found.values()
    }

    /// The export of an item, if it has one.
    pub(super) fn of(&self, declared: Declared<'_>) -> Option<&Export<'s>> {
        self.found.get(&(declared.module.path.clone(), declared.index))
    }

    /// Lists modules, names of other crates, and second names.
    pub(super) fn write_names(&self, listing: &mut Listing) {
        for (path, text, marks) in &self.names {
            listing.item(path, text, marks);
        }
        for export in self.found.values() {
            for (path, marks) in &export.others {
                listing.item(path, &format!(": pub use {}", export.path), marks);
            }
        }
    }

    fn add(&mut self, declared: Declared<'s>, path: String, way: &[String]) {
        let Some(mut marks) = attributes::marks(sources::attributes_of(declared.item)) else { return };
        marks.extend(declared.module.conditions.iter().chain(way).cloned());
        let key = (declared.module.path.clone(), declared.index);
        match self.found.get_mut(&key) {
            None => {
                let export = Export { declared, path, marks, others: Vec::new() };
                self.found.insert(key, export);
            }
            Some(export) if export.path == path => {}
            Some(export) => {
                let length = |path: &str| (path.matches("::").count(), path.to_owned());
                if length(&path) < length(&export.path) {
                    let longer = std::mem::replace(&mut export.path, path);
                    let marks = std::mem::replace(&mut export.marks, marks);
                    export.others.push((longer, marks));
                } else {
                    export.others.push((path, marks));
                }
            }
        }
    }

    /// A macro that is exported stands at the root, wherever it is written.
    fn macros(&mut self, sources: &'s Sources) {
        for module in sources.modules() {
            for (index, item) in module.items.iter().enumerate() {
                let Some(name) = sources::name_of(item).filter(|_| matches!(item, Item::Macro(_))) else {
                    continue;
                };
                if attributes::has(sources::attributes_of(item), "macro_export") {
                    self.add(Declared { module, index, item }, format!("{}::{name}", sources.name), &[]);
                }
            }
        }
    }
}

/// The way from the root to where we are.
struct Walk<'w, 's> {
    sources: &'s Sources,
    exports: &'w mut Exports<'s>,
    /// The modules that we are in, so that a circle of imports ends.
    within: Vec<&'s [String]>,
}

impl<'s> Walk<'_, 's> {
    /// Exports what `module` offers under `path`; `way` are the conditions that led here.
    fn module(&mut self, module: &'s Module, path: &str, way: &[String]) {
        if self.within.contains(&module.path.as_slice()) {
            return;
        }
        self.within.push(&module.path);
        for (index, item) in module.items.iter().enumerate().filter(|(_, item)| sources::is_public(item)) {
            let attributes = sources::attributes_of(item);
            if attributes::is_hidden(attributes) {
                continue;
            }
            match item {
                Item::Use(_) => {
                    let own = attributes::conditions(attributes).unwrap_or_default();
                    let way: Vec<String> = way.iter().cloned().chain(own).collect();
                    for import in sources::imports(item) {
                        self.import(module, &import, path, &way);
                    }
                }
                Item::Mod(_) => {
                    let child = sources::name_of(item).and_then(|name| self.sources.child(module, &name));
                    if let Some((child, name)) = child.zip(sources::name_of(item)) {
                        self.named_module(child, &format!("{path}::{name}"), way);
                    }
                }
                _ => {
                    if let Some(name) = sources::name_of(item) {
                        self.exports.add(Declared { module, index, item }, format!("{path}::{name}"), way);
                    }
                }
            }
        }
        self.within.pop();
    }

    fn named_module(&mut self, module: &'s Module, path: &str, way: &[String]) {
        let marks = module.conditions.iter().chain(way).cloned().collect();
        self.exports.names.push((path.to_owned(), ": mod".to_owned(), marks));
        self.module(module, path, way);
    }

    fn import(&mut self, module: &'s Module, import: &sources::Import, path: &str, way: &[String]) {
        for target in self.sources.resolve(module, &import.path) {
            match (target, &import.name) {
                (Target::Module(opened), None) => self.module(opened, path, way),
                (Target::Module(renamed), Some(name)) => {
                    self.named_module(renamed, &format!("{path}::{name}"), way);
                }
                // A private item of the same name is not what is exported.
                (Target::Item(declared), Some(_)) if !sources::is_public(declared.item) => {}
                (Target::Item(declared), Some(name)) => {
                    self.exports.add(declared, format!("{path}::{name}"), way);
                }
                (Target::Item(_), None) => self.elsewhere(path, "*", &import.path.join("::"), way),
                (Target::Elsewhere(other), None) => self.elsewhere(path, "*", &other, way),
                (Target::Elsewhere(other), Some(name)) => self.elsewhere(path, name, &other, way),
            }
        }
    }

    fn elsewhere(&mut self, path: &str, name: &str, other: &str, way: &[String]) {
        let text = format!(": pub use {other}{}", if name == "*" { "::*" } else { "" });
        self.exports.names.push((format!("{path}::{name}"), text, way.to_vec()));
    }
}
