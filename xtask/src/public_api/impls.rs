//! What exported types implement, and their own methods, wherever in the crate the `impl` stands.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{ImplItem, Item, ItemImpl, Path, Type, Visibility, parse_quote};

use super::exports::{Export, Exports};
use super::listing::Listing;
use super::sources::{self, Module, Sources, Target};
use super::{attributes, items, print};

/// Lists public methods and constants of exported types, and every trait implemented for or with one.
pub(super) fn write(sources: &Sources, exports: &Exports<'_>, listing: &mut Listing) {
    let names = Names { sources, exports };
    for module in sources.modules() {
        for item in &module.items {
            let Item::Impl(item) = item else { continue };
            let Some(mut marks) = attributes::marks(&item.attrs) else { continue };
            marks.extend(module.conditions.iter().cloned());
            match &item.trait_ {
                None => names.inherent(module, item, &marks, listing),
                Some((implemented, _)) => names.of_trait(module, item, implemented, marks, listing),
            }
        }
    }
    for export in exports.iter() {
        converted(export, listing);
    }
}

/// What the names in an `impl` stand for.
struct Names<'n, 's> {
    sources: &'s Sources,
    exports: &'n Exports<'s>,
}

/// An item of this crate that an `impl` names.
enum Own<'e, 's> {
    Exported(&'e Export<'s>),
    Private,
}

impl<'n, 's> Names<'n, 's> {
    fn inherent(&self, module: &Module, item: &ItemImpl, marks: &[String], listing: &mut Listing) {
        let Type::Path(self_type) = &*item.self_ty else { return };
        let Some(Own::Exported(export)) = self.own(module, &self_type.path) else { return };
        for member in &item.items {
            let (name, visibility, attributes) = match member {
                ImplItem::Const(member) => (&member.ident, &member.vis, &member.attrs),
                ImplItem::Fn(member) => (&member.sig.ident, &member.vis, &member.attrs),
                _ => continue,
            };
            let shown = attributes::marks(attributes).filter(|_| matches!(visibility, Visibility::Public(_)));
            let Some(mut all) = shown else { continue };
            all.extend(marks.iter().cloned().chain(items::conditions(export)));
            if !item.generics.params.is_empty() {
                all.push(print::impl_header(item));
            }
            let path = format!("{}::{name}", export.path);
            match member {
                ImplItem::Const(member) => {
                    let text = format!(": const {} = {}", print::ty(&member.ty), print::expr(&member.expr));
                    listing.item(&path, &text, &all);
                }
                ImplItem::Fn(member) => items::function(&path, &member.sig, &all, listing),
                _ => {}
            }
        }
    }

    fn of_trait(
        &self,
        module: &Module,
        item: &ItemImpl,
        implemented: &Path,
        mut marks: Vec<String>,
        listing: &mut Listing,
    ) {
        let mut named = Paths::default();
        named.visit_type(&item.self_ty);
        named.visit_path(implemented);
        let mut exported = Vec::new();
        for path in &named.found {
            match self.own(module, path) {
                Some(Own::Exported(export)) => exported.push(export),
                // Whoever cannot name a part of it cannot use it.
                Some(Own::Private) => return,
                None => {}
            }
        }
        let Some(first) = exported.first() else { return };
        for member in &item.items {
            match member {
                ImplItem::Type(member) => {
                    marks.push(format!("type {} = {}", member.ident, print::ty(&member.ty)));
                }
                ImplItem::Const(member) => {
                    marks.push(format!("const {} = {}", member.ident, print::expr(&member.expr)));
                }
                _ => {}
            }
        }
        marks.extend(exported.iter().flat_map(|export| items::conditions(export)));

        let mut header = item.clone();
        *header.self_ty = self.full_type(module, &item.self_ty);
        if let Some((path, _)) = &mut header.trait_ {
            *path = self.full_path(module, implemented);
        }
        listing.implementation(&first.path, print::impl_header(&header), &marks);
    }

    fn own(&self, module: &Module, path: &Path) -> Option<Own<'n, 's>> {
        let targets = self.sources.resolve(module, &sources::names(path));
        let mut declared = targets.into_iter().filter_map(|target| match target {
            Target::Item(declared) if is_type_or_trait(declared.item) => Some(declared),
            _ => None,
        });
        declared.next().map(|declared| self.exports.of(declared).map_or(Own::Private, Own::Exported))
    }

    /// The type as it is named from outside, as far as it is a path or a reference to one.
    fn full_type(&self, module: &Module, written: &Type) -> Type {
        match written {
            Type::Path(path) if path.qself.is_none() => {
                let full = self.full_path(module, &path.path);
                parse_quote!(#full)
            }
            Type::Reference(reference) => {
                let mut full = reference.clone();
                *full.elem = self.full_type(module, &reference.elem);
                Type::Reference(full)
            }
            _ => written.clone(),
        }
    }

    /// The path as it is named from outside, whatever the module imports.
    fn full_path(&self, module: &Module, written: &Path) -> Path {
        let full = match self.own(module, written) {
            Some(Own::Exported(export)) => export.path.clone(),
            Some(Own::Private) | None => self.sources.full_name(module, written),
        };
        let Ok(mut full) = syn::parse_str::<Path>(&full) else { return written.clone() };
        if let Some((last, written)) = full.segments.last_mut().zip(written.segments.last()) {
            last.arguments = written.arguments.clone();
        }
        full
    }
}

/// `#[from]` on a field of an error is an `impl From` that thiserror writes.
fn converted(export: &Export<'_>, listing: &mut Listing) {
    let Item::Enum(item) = export.declared.item else { return };
    let conditions: Vec<String> = items::conditions(export).collect();
    for field in item.variants.iter().flat_map(|variant| &variant.fields) {
        if attributes::has(&field.attrs, "from") {
            let text = format!("impl From<{}> for {}", print::ty(&field.ty), export.path);
            listing.implementation(&export.path, text, &conditions);
        }
    }
}

fn is_type_or_trait(item: &Item) -> bool {
    matches!(item, Item::Enum(_) | Item::Struct(_) | Item::Trait(_) | Item::Type(_) | Item::Union(_))
}

/// The paths in a type, each once.
#[derive(Default)]
struct Paths {
    found: Vec<Path>,
    seen: BTreeSet<Vec<String>>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast Path) {
        if self.seen.insert(sources::names(path)) {
            self.found.push(path.clone());
        }
        visit::visit_path(self, path);
    }
}
