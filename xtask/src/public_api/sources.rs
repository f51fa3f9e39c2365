//! The modules of a crate, and what a path in one of them stands for.

use std::collections::BTreeMap;
use std::path::Path;

use syn::{Item, UseTree};

use super::attributes;
use crate::step::Failure;

/// Imports that lead in a circle are given up after so many steps.
const MAX_STEPS: usize = 32;

/// Reads a file, if there is one.
type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// All modules of one crate but those of its tests.
pub(super) struct Sources {
    pub(super) name: String,
    modules: BTreeMap<Vec<String>, Module>,
}

/// What stands in one module.
pub(super) struct Module {
    /// The names that lead to it from the root.
    pub(super) path: Vec<String>,
    /// Under which conditions it and those around it are compiled.
    pub(super) conditions: Vec<String>,
    pub(super) items: Vec<Item>,
}

/// An item and where it is declared, which together are its identity.
#[derive(Clone, Copy)]
pub(super) struct Declared<'s> {
    pub(super) module: &'s Module,
    pub(super) index: usize,
    pub(super) item: &'s Item,
}

/// What a path stands for. One name may be a type, a value and a module at once.
pub(super) enum Target<'s> {
    Module(&'s Module),
    Item(Declared<'s>),
    /// A name of another crate, or one inside an item.
    Elsewhere(String),
}

/// One name that a `use` brings in; without a name, all of them.
pub(super) struct Import {
    pub(super) path: Vec<String>,
    pub(super) name: Option<String>,
}

impl Sources {
    /// Reads `lib.rs` and every module that it leads to.
    pub(super) fn load(name: &str, folder: &Path, read: Read<'_>) -> Result<Self, Failure> {
        let mut sources = Self { name: name.to_owned(), modules: BTreeMap::new() };
        let items = parse(&folder.join("lib.rs"), read)?;
        sources.add(Vec::new(), Vec::new(), items, folder, read)?;
        Ok(sources)
    }

    pub(super) fn root(&self) -> Option<&Module> {
        self.modules.get(&[] as &[String])
    }

    pub(super) fn modules(&self) -> impl Iterator<Item = &Module> {
        self.modules.values()
    }

    pub(super) fn child(&self, module: &Module, name: &str) -> Option<&Module> {
        let path: Vec<String> = module.path.iter().cloned().chain([name.to_owned()]).collect();
        self.modules.get(&path)
    }

    /// What `path`, written in `module`, stands for.
    pub(super) fn resolve(&self, module: &Module, path: &[String]) -> Vec<Target<'_>> {
        self.resolve_within(module, path, MAX_STEPS)
    }

    /// The name of another crate's item with the path that an import gives it.
    pub(super) fn full_name(&self, module: &Module, written: &syn::Path) -> String {
        let names = names(written);
        let elsewhere = self.resolve(module, &names).into_iter().find_map(|target| match target {
            Target::Elsewhere(path) => Some(path),
            _ => None,
        });
        elsewhere.unwrap_or_else(|| names.join("::"))
    }

    fn resolve_within(&self, module: &Module, path: &[String], steps: usize) -> Vec<Target<'_>> {
        let Some(steps) = steps.checked_sub(1) else { return Vec::new() };
        // The module may be borrowed from elsewhere; what is returned is ours.
        let mut targets: Vec<Target<'_>> =
            self.modules.get(&module.path).map(Target::Module).into_iter().collect();
        for (position, name) in path.iter().enumerate() {
            let mut next = Vec::new();
            for target in targets {
                match target {
                    Target::Module(within) => {
                        next.extend(self.step(within, name, position == 0, path, steps));
                    }
                    Target::Item(declared) => {
                        let parts = declared.module.path.iter().cloned().chain(name_of(declared.item));
                        let inside: Vec<String> = parts.chain([name.clone()]).collect();
                        next.push(Target::Elsewhere(inside.join("::")));
                    }
                    Target::Elsewhere(outside) => next.push(Target::Elsewhere(format!("{outside}::{name}"))),
                }
            }
            targets = next;
        }
        targets
    }

    /// One name further. A first name that nothing declares is that of another crate, or of the prelude.
    fn step<'s>(
        &'s self,
        module: &'s Module,
        name: &str,
        is_first: bool,
        whole: &[String],
        steps: usize,
    ) -> Vec<Target<'s>> {
        let above = module.path.split_last().and_then(|(_, above)| self.modules.get(above));
        match name {
            "crate" => self.root().map(Target::Module).into_iter().collect(),
            "self" => vec![Target::Module(module)],
            "super" => above.map(Target::Module).into_iter().collect(),
            _ => {
                let found = self.lookup(module, name, is_first.then_some(whole), steps);
                if found.is_empty() && is_first { vec![Target::Elsewhere(name.to_owned())] } else { found }
            }
        }
    }

    /// What a module calls by this name. `use x::x` does not explain the first `x`: `but_not` is the path to explain.
    fn lookup<'s>(
        &'s self,
        module: &'s Module,
        name: &str,
        but_not: Option<&[String]>,
        steps: usize,
    ) -> Vec<Target<'s>> {
        let mut found = Vec::new();
        for (index, item) in module.items.iter().enumerate() {
            if name_of(item).is_some_and(|declared| declared == name) {
                found.push(match item {
                    Item::Mod(_) => match self.child(module, name) {
                        Some(child) => Target::Module(child),
                        None => continue,
                    },
                    _ => Target::Item(Declared { module, index, item }),
                });
            }
        }
        let imports: Vec<Import> = module.items.iter().flat_map(imports).collect();
        for import in &imports {
            if import.name.as_deref() == Some(name) && but_not != Some(&import.path) {
                found.extend(self.resolve_within(module, &import.path, steps));
            }
        }
        if found.is_empty() {
            let Some(steps) = steps.checked_sub(1) else { return found };
            for import in imports.iter().filter(|import| import.name.is_none()) {
                for target in self.resolve_within(module, &import.path, steps) {
                    if let Target::Module(opened) = target {
                        found.extend(self.lookup(opened, name, None, steps));
                    }
                }
            }
        }
        found
    }

    fn add(
        &mut self,
        path: Vec<String>,
        conditions: Vec<String>,
        items: Vec<Item>,
        folder: &Path,
        read: Read<'_>,
    ) -> Result<(), Failure> {
        let mut kept = Vec::new();
        for mut item in items {
            let Some(own) = attributes::conditions(attributes_of(&item)) else { continue };
            if let Item::Mod(module) = &mut item {
                let name = module.ident.to_string();
                let inner_folder = folder.join(&name);
                let inner = match module.content.take() {
                    Some((_, items)) => items,
                    None if attributes::has(&module.attrs, "path") => {
                        return Err(format!(
                            "module {name} has a path of its own; move it to where it is looked for"
                        ));
                    }
                    None => {
                        let beside = folder.join(format!("{name}.rs"));
                        let is_beside = read(&beside).is_some();
                        parse(&if is_beside { beside } else { inner_folder.join("mod.rs") }, read)?
                    }
                };
                let inner_path = path.iter().cloned().chain([name]).collect();
                let inner_conditions = conditions.iter().cloned().chain(own).collect();
                self.add(inner_path, inner_conditions, inner, &inner_folder, read)?;
            }
            kept.push(item);
        }
        let module = Module { path: path.clone(), conditions, items: kept };
        match self.modules.insert(path, module) {
            None => Ok(()),
            Some(twice) => Err(format!("module {} is declared twice", twice.path.join("::"))),
        }
    }
}

/// The names of a path, without what is between `<` and `>`.
pub(super) fn names(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Every name that an item brings in, if it is a `use`.
pub(super) fn imports(item: &Item) -> Vec<Import> {
    let mut found = Vec::new();
    if let Item::Use(item) = item {
        flatten(&item.tree, &[], &mut found);
    }
    found
}

fn flatten(tree: &UseTree, before: &[String], found: &mut Vec<Import>) {
    let with = |name: &syn::Ident| before.iter().cloned().chain([name.to_string()]).collect::<Vec<String>>();
    match tree {
        UseTree::Path(path) => flatten(&path.tree, &with(&path.ident), found),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, found)),
        UseTree::Glob(_) => found.push(Import { path: before.to_vec(), name: None }),
        // `use a::{self}` brings in `a` itself.
        UseTree::Name(name) if name.ident == "self" => {
            found.push(Import { path: before.to_vec(), name: before.last().cloned() });
        }
        UseTree::Name(name) => {
            found.push(Import { path: with(&name.ident), name: Some(name.ident.to_string()) });
        }
        UseTree::Rename(rename) => {
            let path = if rename.ident == "self" { before.to_vec() } else { with(&rename.ident) };
            found.push(Import { path, name: Some(rename.rename.to_string()) });
        }
    }
}

fn parse(path: &Path, read: Read<'_>) -> Result<Vec<Item>, Failure> {
    let text = read(path).ok_or_else(|| format!("cannot read {}", path.display()))?;
    let file = syn::parse_file(&text).map_err(|error| format!("cannot parse {}: {error}", path.display()))?;
    Ok(file.items)
}

/// The name that an item declares.
pub(super) fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Mod(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The attributes of an item.
pub(super) fn attributes_of(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an item is offered to whoever sees its module.
pub(super) fn is_public(item: &Item) -> bool {
    let visibility = match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Mod(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        Item::Union(item) => &item.vis,
        Item::Use(item) => &item.vis,
        _ => return false,
    };
    matches!(visibility, syn::Visibility::Public(_))
}
